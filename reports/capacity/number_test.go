package capacity

import (
	"bytes"
	"math"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNumbersAreWrittenAsPythonWritesThem(t *testing.T) {
	g := NewWithT(t)
	for v, want := range map[float64]string{ // by Python 3.11
		0: "0.0", 1: "1.0", -1: "-1.0", 448: "448.0", 0.1: "0.1", 1e-4: "0.0001", 9.999e-5: "9.999e-05", 1e-5: "1e-05",
		1.5e-7: "1.5e-07", 1e15: "1000000000000000.0", 9999999999999998: "9999999999999998.0", 1e16: "1e+16",
		1.2345678901234567e19: "1.2345678901234567e+19", 1e22: "1e+22", 1e100: "1e+100", -1e-100: "-1e-100",
		123456789012345.6: "123456789012345.6", 5e-324: "5e-324", math.MaxFloat64: "1.7976931348623157e+308",
		86911.82800000024: "86911.82800000024", 0.30000000000000004: "0.30000000000000004",
	} {
		got, err := floatText(v)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(want))
	}
	got, err := floatText(math.Copysign(0, -1))
	g.Expect(got, err).To(Equal("-0.0"))
}

func TestWhatIsNoFiniteNumberIsRefusedWithItsPlace(t *testing.T) {
	g := NewWithT(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		var b bytes.Buffer
		err := encode(&b, object{"a/b": list{1, &v}})
		g.Expect(err).To(MatchError(ContainSubstring(`at "/a~1b/1": write number: expected a finite value`)))
	}
	g.Expect(encode(&bytes.Buffer{}, object{"a": []int{1}})).To(MatchError(ContainSubstring("received a []int")))
}

func TestTextIsWrittenInASCII(t *testing.T) {
	g := NewWithT(t)
	// json.dumps of the same text by Python 3.11
	g.Expect(quoted("a\"b\\c/\n\r\t\b\f\x00\x1f\x7f é ✓ 🦙 \u2028<>&")).To(
		Equal(`"a\"b\\c/\n\r\t\b\f\u0000\u001f\u007f \u00e9 \u2713 \ud83e\udd99 \u2028<>&"`))
}

func TestEmptyObjectsAndListsStandOnOneLine(t *testing.T) {
	g := NewWithT(t)
	var b bytes.Buffer
	none := stream(func(func(any) error) error { return nil })
	g.Expect(encode(&b, object{"b": object{}, "a": list{}, "c": none, "d": (*int)(nil)})).To(Succeed())
	g.Expect(b.String()).To(Equal("{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [],\n  \"d\": null\n}\n"))
}

func FuzzNumbersReadBackAsThemselves(f *testing.F) {
	for _, v := range []float64{0, 1e16, 1e-5, math.Pi, 5e-324} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		text, err := floatText(v)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if err == nil {
				t.Fatalf("%v is written as %q", v, text)
			}
			return
		}
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) {
			t.Fatalf("%v is written as %q", v, text)
		}
	})
}
