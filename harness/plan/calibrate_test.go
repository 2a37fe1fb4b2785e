package plan

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestACalibrationIsTheLineThroughItsPoints(t *testing.T) {
	for name, c := range map[string]struct {
		points []CalibrationPoint
		want   fixtures.Calibration
	}{
		"with a template":       {[]CalibrationPoint{{1000, 262}, {9000, 2262}}, fixtures.Calibration{CharsPerToken: 4, OverheadTokens: 12}},
		"the longer one first":  {[]CalibrationPoint{{9000, 2262}, {1000, 262}}, fixtures.Calibration{CharsPerToken: 4, OverheadTokens: 12}},
		"without one":           {[]CalibrationPoint{{1000, 250}, {9000, 2250}}, fixtures.Calibration{CharsPerToken: 4}},
		"a little below zero":   {[]CalibrationPoint{{1000, 240}, {9000, 2250}}, fixtures.Calibration{CharsPerToken: 4}},
		"a long system message": {[]CalibrationPoint{{1000, 3250}, {9000, 5250}}, fixtures.Calibration{CharsPerToken: 4, OverheadTokens: 3000}},
		"at the upper bound":    {[]CalibrationPoint{{1000, 50}, {9000, 450}}, fixtures.Calibration{CharsPerToken: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Calibrate(c.points)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(got).To(Equal(c.want))
		})
	}
}

func TestPointsThatNoTextCanHaveAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		points []CalibrationPoint
		want   string
	}{
		"one point":           {[]CalibrationPoint{{1000, 250}}, "expected 2 points, received 1"},
		"equal lengths":       {[]CalibrationPoint{{1000, 250}, {1000, 260}}, "different length"},
		"an empty message":    {[]CalibrationPoint{{0, 10}, {1000, 260}}, "neither empty"},
		"no tokens":           {[]CalibrationPoint{{1000, 0}, {9000, 2250}}, "at least one token"},
		"not rising":          {[]CalibrationPoint{{1000, 250}, {9000, 250}}, "more tokens for the longer"},
		"falling":             {[]CalibrationPoint{{1000, 2250}, {9000, 250}}, "more tokens for the longer"},
		"a token of half":     {[]CalibrationPoint{{1000, 2000}, {9000, 18000}}, "0.5 characters per token"},
		"a token of too many": {[]CalibrationPoint{{1000, 49}, {9000, 440}}, "20.46"},
		"only new tokens":     {[]CalibrationPoint{{1000, 10}, {9000, 2250}}, "not all tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Calibrate(c.points)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
			NewWithT(t).Expect(got).To(BeZero())
		})
	}
}

func TestACalibrationThatIsNoNumberIsRefused(t *testing.T) {
	for _, c := range []fixtures.Calibration{
		{}, {CharsPerToken: math.NaN()}, {CharsPerToken: math.Inf(1)}, {CharsPerToken: 3, OverheadTokens: math.NaN()},
		{CharsPerToken: 3, OverheadTokens: -1}, {CharsPerToken: 3, OverheadTokens: math.Inf(1)},
	} {
		_, err := Capacity(capacityRun(func(run *fixtures.CapacityRun) { run.Calibration = c }), "m", nil)
		NewWithT(t).Expect(err).To(HaveOccurred())
	}
}
