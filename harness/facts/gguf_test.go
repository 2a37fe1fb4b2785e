package facts

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// ggufWriter writes GGUF headers for tests.
type ggufWriter struct {
	order binary.AppendByteOrder
	body  []byte
	pairs uint64
}

func (w *ggufWriter) u32(n uint32) *ggufWriter  { w.body = w.order.AppendUint32(w.body, n); return w }
func (w *ggufWriter) u64(n uint64) *ggufWriter  { w.body = w.order.AppendUint64(w.body, n); return w }
func (w *ggufWriter) raw(b ...byte) *ggufWriter { w.body = append(w.body, b...); return w }
func (w *ggufWriter) str(s string) *ggufWriter  { return w.u64(uint64(len(s))).raw([]byte(s)...) }

// key begins a pair whose value is of the given type.
func (w *ggufWriter) key(name string, kind uint32) *ggufWriter {
	w.pairs++
	return w.str(name).u32(kind)
}

func (w *ggufWriter) file(version uint32) []byte {
	head := &ggufWriter{order: w.order}
	return append(head.raw([]byte("GGUF")...).u32(version).u64(7).u64(w.pairs).body, w.body...)
}

// model is a header as a converter writes it, with a vocabulary among the facts.
func model(order binary.AppendByteOrder) *ggufWriter {
	w := &ggufWriter{order: order}
	w.key("general.architecture", 8).str("qwen3")
	w.key("general.flag", 7).raw(1)
	w.key("general.half", 2).raw(1, 2)
	w.key("qwen3.rope.freq_base", 6).u32(1)
	w.key("tokenizer.ggml.tokens", 9).u32(8).u64(3).str("a").str("").str("ccc")
	w.key("tokenizer.ggml.scores", 9).u32(6).u64(2).u32(1).u32(2)
	w.key("general.nested", 9).u32(9).u64(2).u32(0).u64(1).raw(5).u32(8).u64(1).str("x")
	w.key("general.name", 8).str("Tiny Chat")
	w.key("general.size_label", 8).str("2.6M")
	w.key("general.size", 10).u64(9)
	w.key("general.file_type", 4).u32(26)
	w.key("general.quantization_version", 4).u32(2)
	return w
}

func TestAGGUFFileTellsItsNameAndItsQuantization(t *testing.T) {
	want := func(version uint32) *fixtures.GGUFFacts {
		return &fixtures.GGUFFacts{Version: version, Name: "Tiny Chat", Architecture: "qwen3", SizeLabel: "2.6M",
			FileType: new(uint32(26)), Quantization: "IQ3_S", QuantizationVersion: new(uint32(2))}
	}
	g := NewWithT(t)
	g.Expect(readGGUF(bytes.NewReader(append(model(binary.LittleEndian).file(3), "tensors"...)))).To(Equal(want(3)))
	g.Expect(readGGUF(bytes.NewReader(model(binary.LittleEndian).file(2)))).To(Equal(want(2)))
	g.Expect(readGGUF(bytes.NewReader(model(binary.BigEndian).file(3)))).To(Equal(want(3)), "big-endian")
}

func TestWhatIsNoGGUFFileHasNoFactsAndIsNoError(t *testing.T) {
	for _, text := range []string{"", "GGU", "GGML\x03\x00\x00\x00", "PK\x03\x04 some archive"} {
		facts, err := readGGUF(strings.NewReader(text))
		if facts != nil || err != nil {
			t.Errorf("%q gives %+v, %v", text, facts, err)
		}
	}
}

func TestABrokenGGUFHeaderIsAReasonAndNotHalfTheFacts(t *testing.T) {
	little := func() *ggufWriter { return &ggufWriter{order: binary.LittleEndian} }
	whole := model(binary.LittleEndian).file(3)
	pairs := func(n uint64) []byte { w := little().key("a", 0).raw(1); w.pairs = n; return w.file(3) }
	deep := little().key("a", 9)
	for range 100_000 {
		deep.u32(9).u64(1)
	}
	for name, c := range map[string]struct {
		header []byte
		want   string
	}{
		"cut off":             {whole[:len(whole)-1], "ends early"},
		"only a magic":        {[]byte("GGUF"), "ends early"},
		"an old version":      {little().file(1), "version 2 or 3, got 1"},
		"a later version":     {little().file(4), "version 2 or 3, got 4"},
		"too many pairs":      {pairs(1 << 40), "1099511627776"},
		"a pair that is none": {pairs(2), "ends early"},
		"an endless key":      {little().key("a", 8).u64(1 << 62).file(3), "bytes"},
		"an endless array":    {little().key("a", 9).u32(4).u64(1 << 61).file(3), "bytes"},
		"endless strings":     {little().key("a", 9).u32(8).u64(1 << 61).file(3), "bytes"},
		"arrays in arrays":    {deep.file(3), "arrays"},
		"an unknown type":     {little().key("a", 13).file(3), "type 13"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			facts, err := readGGUF(bytes.NewReader(c.header))
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			g.Expect(facts).To(BeNil())
		})
	}
}

func TestGGUFValuesOfOtherTypesAndLengthsAreNoFacts(t *testing.T) {
	g := NewWithT(t)
	w := &ggufWriter{order: binary.LittleEndian}
	w.key("general.name", 4).u32(7)
	w.key("general.architecture", 8).str(strings.Repeat("a", maxGGUFText+1))
	w.key("general.size_label", 8).str("7B\xff")
	w.key("general.size_label", 8).str("a second one")
	w.key("general.file_type", 8).str("Q8_0")
	g.Expect(readGGUF(bytes.NewReader(w.file(3)))).To(Equal(&fixtures.GGUFFacts{Version: 3, SizeLabel: "7B\uFFFD"}))
}

func TestAFileTypeHasTheNameThatLlamaCppGivesIt(t *testing.T) {
	for number, want := range map[uint32]string{0: "F32", 7: "Q8_0", 15: "Q4_K_M", 32: "BF16", 38: "MXFP4_MOE", 1024 + 15: "Q4_K_M", 4: "", 99: "", 1024: ""} {
		w := &ggufWriter{order: binary.LittleEndian}
		w.key("general.file_type", 4).u32(number)
		facts, err := readGGUF(bytes.NewReader(w.file(3)))
		if err != nil || facts.Quantization != want || *facts.FileType != number {
			t.Errorf("%d gives %+v, %v; want %q", number, facts, err, want)
		}
	}
}

func TestTheHostsFactsHoldWhatItsModelFilesSayOfThemselves(t *testing.T) {
	g := NewWithT(t)
	w := model(binary.LittleEndian)
	root := tree(t, map[string]string{"good.gguf": string(w.file(3)), "bad.gguf": string(w.file(9)), "other": "abc"})
	var files []string
	for _, name := range []string{"good.gguf", "bad.gguf", "other"} {
		files = append(files, filepath.Join(root, name))
	}
	f := newMachine(t.TempDir(), tools{}.run).host(t.Context(), Options{ModelFiles: files})
	g.Expect(f.ModelFiles).To(HaveLen(3))
	g.Expect(f.ModelFiles[0].GGUF.Name).To(Equal("Tiny Chat"))
	g.Expect(f.ModelFiles[1].GGUF).To(BeNil())
	g.Expect(f.ModelFiles[2].GGUF).To(BeNil())
	g.Expect(f.ModelFiles[1].SHA256).To(HaveLen(64))
	g.Expect(f.Reasons["model_files.1.gguf"]).To(And(ContainSubstring("bad.gguf"), ContainSubstring("got 9")))
	g.Expect(f.Reasons).NotTo(HaveKey("model_files.2.gguf"))
}

func FuzzReadGGUF(f *testing.F) {
	f.Add(model(binary.LittleEndian).file(3))
	f.Add(model(binary.BigEndian).file(3))
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		facts, err := readGGUF(bytes.NewReader(data))
		if err != nil && facts != nil {
			t.Error("facts beside an error")
		}
		if facts == nil {
			return
		}
		if !bytes.HasPrefix(data, []byte("GGUF")) || facts.Version < 2 || facts.Version > 3 {
			t.Errorf("facts %+v from %q", facts, data)
		}
		for _, text := range []string{facts.Name, facts.Architecture, facts.SizeLabel} {
			if len(text) > 3*maxGGUFText {
				t.Errorf("a text of %d bytes was kept", len(text))
			}
		}
		if _, err := json.Marshal(facts); err != nil {
			t.Error(err)
		}
	})
}
