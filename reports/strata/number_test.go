package strata

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNumbersAreWrittenAsTheFormatSays(t *testing.T) {
	for _, c := range []struct {
		value    float64
		decimals int
		want     string
	}{
		{448, 6, "448.0"},
		{0, 4, "0.0"},
		{0.5133, 4, "0.5133"},
		{0.4850, 4, "0.485"},
		{2242.52128, 6, "2242.52128"},
		{1.0 / 3, 6, "0.333333"},
		{0.00000049, 6, "0.0"},
		{-0.0000001, 6, "0.0"},
		{-0.125, 6, "-0.125"},
		{1e21, 6, "1000000000000000000000.0"},
		{102.0706, 3, "102.071"},
		{250, asMeasured, "250.0"},
		{0.1, asMeasured, "0.1"},
		{3e-8, 9, "0.00000003"},
	} {
		g := NewWithT(t)
		n, err := NewNumber(c.value, c.decimals)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n.String()).To(Equal(c.want))
		g.Expect(n.MarshalJSON()).To(Equal([]byte(c.want)))
	}
}

func TestNumbersThatAreNotFiniteAreRefused(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := NewNumber(v, 6)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("expected a finite value")), "%v", v)
	}
}

func TestAnyNumberIsWrittenInTheFormTheValidatorDemandsAndKeepsItsValue(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		v := math.Ldexp(random.Float64()-0.5, random.IntN(80)-40)
		decimals := 1 + random.IntN(9)
		n, err := NewNumber(v, decimals)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(floatForm.MatchString(n.String())).To(BeTrue(), n.String())
		_, fraction, _ := strings.Cut(n.String(), ".")
		g.Expect(len(fraction)).To(BeNumerically("<=", decimals))
		g.Expect(near(n.Float64(), v, decimals)).To(BeTrue(), "%v became %s", v, n)
	}
}
