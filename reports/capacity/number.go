package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// floatText writes a number as Python's repr does, which is how the format's floats are written: the shortest digits that
// read back as the same number (https://docs.python.org/3/tutorial/floatingpoint.html), with ".0" where it is whole, with
// an exponent of two digits at least below 1e-4 and from 1e16 on. NaN and infinities are refused.
func floatText(v float64) (string, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", fmt.Errorf("write number: expected a finite value, received %v", v)
	}
	scientific := strconv.FormatFloat(v, 'e', -1, 64)
	exponent, err := strconv.Atoi(scientific[strings.IndexByte(scientific, 'e')+1:])
	if err != nil {
		return "", fmt.Errorf("write number %v: %w", v, err)
	}
	if exponent < -4 || exponent >= 16 {
		return scientific, nil
	}
	plain := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(plain, ".") {
		plain += ".0"
	}
	return plain, nil
}
