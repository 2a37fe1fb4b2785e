package facts

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"strings"

	"plumbline/fixtures"
)

// The bounds of a header. Real ones have some fifty pairs, and vocabularies that take up to some ten megabytes.
const (
	maxGGUFHeader = 256 << 20 // bytes read
	maxGGUFPairs  = 1 << 16
	maxGGUFKey    = 1<<16 - 1 // bytes, by the format
	maxGGUFText   = 4 << 10   // bytes of a text that is kept; a longer one is no fact
	maxGGUFDepth  = 8         // of arrays in arrays
)

// ggufType is the type of a metadata value (ggml-org/ggml docs/gguf.md, gguf_metadata_value_type).
type ggufType uint32

const (
	ggufUint32 ggufType = 4
	ggufString ggufType = 8
	ggufArray  ggufType = 9
)

// ggufSizes are the bytes that a value of each type takes, 0 for those that tell their own length.
var ggufSizes = []uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// fileTypes are the names of general.file_type (ggml-org/llama.cpp include/llama.h, llama_ftype). The numbers left out
// are those of types that were removed.
var fileTypes = map[uint32]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
	13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
	21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
	30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}

// guessedType is added to a file type that the writer of the file did not know for sure, and stands alone for one that it
// did not know at all.
const guessedType = 1024

// readGGUFFile reads what a GGUF file says of itself; nil for any other file.
func readGGUFFile(path string) (*fixtures.GGUFFacts, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read GGUF header of %q: %w", path, cause(err))
	}
	defer f.Close()
	facts, err := readGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("read GGUF header of %q: %w", path, cause(err))
	}
	return facts, nil
}

// readGGUF reads the metadata at the start of a GGUF file of version 2 or 3 in either byte order. Without the format's
// magic bytes there are no facts and no error.
func readGGUF(in io.Reader) (*fixtures.GGUFFacts, error) {
	r := &ggufReader{in: bufio.NewReader(io.LimitReader(in, maxGGUFHeader)), order: binary.LittleEndian}
	if string(r.take(4)) != "GGUF" {
		return nil, nil
	}
	version := uint32(r.number(4))
	if version != 0 && version&0xffff == 0 { // the format has no mark of its byte order
		version, r.order = bits.ReverseBytes32(version), binary.BigEndian
	}
	if r.err == nil && version != 2 && version != 3 {
		return nil, fmt.Errorf("want version 2 or 3, got %d", version)
	}
	r.number(8) // tensors
	pairs := r.number(8)
	if pairs > maxGGUFPairs {
		return nil, fmt.Errorf("want at most %d pairs of metadata, got %d", maxGGUFPairs, pairs)
	}
	facts := &fixtures.GGUFFacts{Version: version}
	texts := map[string]*string{"general.name": &facts.Name, "general.architecture": &facts.Architecture, "general.size_label": &facts.SizeLabel}
	numbers := map[string]**uint32{"general.file_type": &facts.FileType, "general.quantization_version": &facts.QuantizationVersion}
	for range pairs {
		key := r.text(maxGGUFKey)
		kind := ggufType(r.number(4))
		text, number := texts[key], numbers[key]
		switch {
		case text != nil && kind == ggufString && *text == "":
			*text = strings.ToValidUTF8(r.text(maxGGUFText), "\uFFFD")
		case number != nil && kind == ggufUint32 && *number == nil:
			*number = new(uint32(r.number(4)))
		default:
			r.skip(kind, 0)
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	if t := facts.FileType; t != nil && *t != guessedType {
		facts.Quantization = fileTypes[*t&^guessedType]
	}
	return facts, nil
}

// ggufReader reads the parts of a header. After its first error it gives zeros.
type ggufReader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	err   error
}

func (r *ggufReader) fail(err error) {
	if r.err == nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("it ends early, or is longer than %d bytes: %w", maxGGUFHeader, io.ErrUnexpectedEOF)
		}
		r.err = err
	}
}

// take reads n bytes, a small number.
func (r *ggufReader) take(n uint64) []byte {
	b := make([]byte, n)
	if r.err == nil {
		if _, err := io.ReadFull(r.in, b); err != nil {
			r.fail(err)
			clear(b)
		}
	}
	return b
}

// number reads an unsigned number of 4 or 8 bytes.
func (r *ggufReader) number(size uint64) uint64 {
	b := r.take(size)
	if size == 4 {
		return uint64(r.order.Uint32(b))
	}
	return r.order.Uint64(b)
}

// text reads a text, and gives "" for one that is longer than most bytes.
func (r *ggufReader) text(most uint64) string {
	n := r.number(8)
	if n > most {
		r.discard(n, 1)
		return ""
	}
	return string(r.take(n))
}

// discard passes over n items of a size in bytes.
func (r *ggufReader) discard(n, size uint64) {
	if r.err != nil {
		return
	}
	if n > maxGGUFHeader/size {
		r.fail(fmt.Errorf("want at most %d bytes, got %d times %d", maxGGUFHeader, n, size))
		return
	}
	if _, err := r.in.Discard(int(n * size)); err != nil {
		r.fail(err)
	}
}

// skip passes over a value. Every element of an array takes a byte or more, so the bound of the header bounds the work.
func (r *ggufReader) skip(kind ggufType, depth int) {
	switch {
	case r.err != nil:
	case kind == ggufString:
		r.discard(r.number(8), 1)
	case kind == ggufArray && depth == maxGGUFDepth:
		r.fail(fmt.Errorf("want at most %d arrays in each other", maxGGUFDepth))
	case kind == ggufArray:
		element, n := ggufType(r.number(4)), r.number(8)
		if uint64(element) < uint64(len(ggufSizes)) && ggufSizes[element] > 0 {
			r.discard(n, ggufSizes[element])
			return
		}
		for ; n > 0 && r.err == nil; n-- {
			r.skip(element, depth+1)
		}
	case uint64(kind) < uint64(len(ggufSizes)):
		r.discard(1, ggufSizes[kind])
	default:
		r.fail(fmt.Errorf("want a value of a known type, got type %d", kind))
	}
}
