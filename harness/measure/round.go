package measure

import (
	"math"
	"strconv"
	"time"
)

// Decimals of the standard document.
const (
	engineDecimals = 4 // seconds by the engine's clock
	clientDecimals = 6 // seconds by the client's clock
	rateDecimals   = 6 // tokens per second
)

// Round is the number of that many decimals that is nearest to x, a tie to the even one. It works on x's exact value,
// where multiplying by a power of ten would round twice. Infinities and NaN stay what they are.
func Round(x float64, decimals int) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
	if err != nil {
		return x
	}
	return y
}

func clientSeconds(d time.Duration) float64 { return Round(d.Seconds(), clientDecimals) }
