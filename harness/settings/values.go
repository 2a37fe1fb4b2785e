package settings

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// assign reads the texts given for a setting into its struct field. The error says what would be valid; the caller
// adds name, value and source.
func assign(target reflect.Value, f field, texts []string, baseDir string) error {
	switch {
	case f.list && f.kind == kindInt:
		return assignList(target, f, texts, func(text string) (int, error) { return readInt[int](f, text) })
	case f.list:
		return assignList(target, f, texts, func(text string) (string, error) { return readText(f, text, baseDir) })
	}
	text := texts[len(texts)-1]
	switch f.kind {
	case kindBool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		target.SetBool(v)
	case kindInt:
		v, err := readInt[int64](f, text)
		if err != nil {
			return err
		}
		target.SetInt(v)
	case kindNumber:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(float64(f.min) <= v && v <= float64(f.max)) { // NaN too
			return fmt.Errorf("want a number from %d to %d", f.min, f.max)
		}
		if target.Kind() == reflect.Pointer {
			target.Set(reflect.ValueOf(&v))
			break
		}
		target.SetFloat(v)
	case kindBytes:
		v, err := parseBytes(text)
		if err != nil {
			return err
		}
		target.SetInt(v)
	case kindDuration:
		v, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("want a number with its unit, such as 500ms, 90s, 10m or 1h30m")
		}
		if v <= 0 {
			return fmt.Errorf("want a duration above zero")
		}
		target.SetInt(int64(v))
	default:
		v, err := readText(f, text, baseDir)
		if err != nil {
			return err
		}
		target.SetString(v)
	}
	return nil
}

// assignList reads each text of a list, and keeps each value once, but for words, which mean something twice.
func assignList[T comparable](target reflect.Value, f field, texts []string, read func(string) (T, error)) error {
	list := make([]T, 0, len(texts))
	for _, text := range texts {
		v, err := read(text)
		if err != nil {
			return err
		}
		if f.kind == kindWord || !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	target.Set(reflect.ValueOf(list))
	return nil
}

func readInt[T int | int64](f field, text string) (T, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < f.min || v > f.max {
		return 0, fmt.Errorf("want a whole number from %d to %d", f.min, f.max)
	}
	return T(v), nil
}

func readText(f field, text, baseDir string) (string, error) {
	switch {
	case text == "":
		return "", fmt.Errorf("the value is empty: leave the setting out, or give it a value")
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("want a text without a zero byte")
	case f.enum != nil && !slices.Contains(f.enum, text):
		return "", fmt.Errorf("%svalid values: %s", suggestion(text, f.enum), strings.Join(f.enum, ", "))
	case f.kind == kindVariable && !variableName.MatchString(text):
		return "", fmt.Errorf("want the NAME of an environment variable (letters, digits and underscores), not the key itself")
	case f.kind == kindPath, f.kind == kindProgram && strings.ContainsRune(text, '/'), f.kind == kindNameOrFile && strings.HasSuffix(text, ".json"):
		return resolvePath(text, baseDir), nil
	}
	return text, nil
}

// splitList cuts a list as flags and variables write it: at commas, and a list of words at the ends of its lines.
func splitList(f field, text string) []string {
	if f.kind == kindWord {
		return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// byteUnits are the suffixes of a size, longest first, so that "MiB" is not read as "B".
var byteUnits = []struct {
	suffix string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// parseBytes reads a size: a whole number of bytes, or of a unit such as MiB (1,048,576) or MB (1,000,000).
func parseBytes(text string) (int64, error) {
	const want = "want a size above zero in bytes or with a unit, such as 65536, 512KiB, 64MiB or 1GiB"
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64/u.factor {
			return 0, fmt.Errorf(want)
		}
		return n * u.factor, nil
	}
	return 0, fmt.Errorf(want)
}
