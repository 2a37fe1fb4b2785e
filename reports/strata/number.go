package strata

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Decimals of the document's numbers (ref).
const (
	engineDecimals   = 4 // seconds of the engine's clock
	clientDecimals   = 6 // seconds of the client's clock
	rateDecimals     = 6 // tokens per second, and ratios
	durationDecimals = 3 // seconds of a whole phase
	clockDecimals    = 9 // seconds of the clock's own resolution (ours)
	asMeasured       = -1
)

// Number is a finite decimal number that keeps the way it is written: at most as many decimals as its field allows,
// trailing zeros dropped but one decimal kept, never an exponent. The zero value is 0.0.
type Number struct {
	value float64
	text  string
}

// NewNumber rounds v to a number of decimals (a negative one keeps all that are needed to tell v apart). NaN and
// infinities are refused.
func NewNumber(v float64, decimals int) (Number, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Number{}, fmt.Errorf("make number: expected a finite value, received %v", v)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(text, "0")
	} else {
		text += "."
	}
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	if text == "-0.0" {
		text = "0.0"
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Number{}, fmt.Errorf("make number from %v: %w", v, err)
	}
	return Number{value, text}, nil
}

// Float64 is the number's value, as it is written.
func (n Number) Float64() float64 { return n.value }

// String is the number as it is written.
func (n Number) String() string {
	if n.text == "" {
		return "0.0"
	}
	return n.text
}

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalJSON implements json.Unmarshaler. It keeps the number as it stands; whether it is well written is for
// Validate to say.
func (n *Number) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseFloat(string(data), 64)
	if err != nil {
		return fmt.Errorf("read number %q: %w", data, err)
	}
	*n = Number{value, string(data)}
	return nil
}
