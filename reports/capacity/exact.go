package capacity

import (
	"math"
	"math/big"
)

// exactSums holds the sum of finite numbers and the sum of their squares without any rounding, as whole multiples of a
// power of two: the smallest one that a number needs. Adding is linear in the count, which sums of big.Rat are not.
type exactSums struct {
	count    int64
	exponent int      // the sum is sum · 2^exponent
	sum      *big.Int // units of 2^exponent
	squares  *big.Int // units of 2^(2·exponent)
}

func sumExactly(values []float64) exactSums {
	s := exactSums{count: int64(len(values)), exponent: math.MaxInt, sum: new(big.Int), squares: new(big.Int)}
	for _, v := range values {
		if m, e := wholeParts(v); m != 0 {
			s.exponent = min(s.exponent, e)
		}
	}
	if s.exponent == math.MaxInt {
		s.exponent = 0
	}
	var term, square big.Int
	for _, v := range values {
		m, e := wholeParts(v)
		if m == 0 {
			continue
		}
		term.SetInt64(m)
		term.Lsh(&term, uint(e-s.exponent))
		s.sum.Add(s.sum, &term)
		s.squares.Add(s.squares, square.Mul(&term, &term))
	}
	return s
}

// wholeParts splits a finite number into m · 2^e with a whole m.
func wholeParts(v float64) (m int64, e int) {
	fraction, exponent := math.Frexp(v)
	return int64(math.Ldexp(fraction, 53)), exponent - 53
}

// mean is the float64 nearest to the mean; it needs one number at least.
func (s exactSums) mean() float64 {
	numerator, denominator := new(big.Int).Set(s.sum), big.NewInt(s.count)
	if s.exponent >= 0 {
		numerator.Lsh(numerator, uint(s.exponent))
	} else {
		denominator.Lsh(denominator, uint(-s.exponent))
	}
	nearest, _ := new(big.Rat).SetFrac(numerator, denominator).Float64()
	return nearest
}

// deviation is the float64 nearest to the sample standard deviation (n − 1); it needs two numbers at least.
func (s exactSums) deviation() float64 {
	n := big.NewInt(s.count)
	numerator := new(big.Int).Mul(n, s.squares)
	numerator.Sub(numerator, new(big.Int).Mul(s.sum, s.sum))
	denominator := new(big.Int).Mul(n, big.NewInt(s.count-1))
	return math.Abs(rootOfFraction(numerator, denominator, s.exponent))
}

// rootBits is how many bits of a root are computed at least, before its one rounding to the 53 of a float64.
const rootBits = 128

// rootOfFraction is the float64 nearest to √(numerator/denominator) · 2^exponent. The whole root of a widened fraction is
// taken and marked as inexact in a further bit, so that rounding sees on which side of a half the true root lies.
func rootOfFraction(numerator, denominator *big.Int, exponent int) float64 {
	if numerator.Sign() == 0 {
		return 0
	}
	widen := max(0, 2*rootBits-numerator.BitLen()+denominator.BitLen())
	widen += widen % 2
	wide := new(big.Int).Lsh(numerator, uint(widen))
	quotient, remainder := new(big.Int).QuoRem(wide, denominator, new(big.Int))
	root := new(big.Int).Sqrt(quotient)
	inexact := remainder.Sign() != 0 || new(big.Int).Mul(root, root).Cmp(quotient) != 0
	root.Lsh(root, 1)
	if inexact {
		root.SetBit(root, 0, 1)
	}
	scaled := new(big.Float).SetInt(root) // exact: SetInt takes as much precision as it needs
	scaled.SetMantExp(scaled, exponent-widen/2-1)
	nearest, _ := scaled.Float64()
	return nearest
}
