package facts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata is one of the captured outputs, written after the public documentation of the tools.
func testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tree lays out files below a new root; a value "→ x" is a symbolic link to x.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "→ "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// tools is a runner that knows some command lines, by their beginning.
type tools map[string]any

func (k tools) run(_ context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	best := ""
	for known := range k {
		if strings.HasPrefix(line, known) && len(known) > len(best) {
			best = known
		}
	}
	switch v := k[best].(type) {
	case []byte:
		return v, nil
	case error:
		return nil, v
	}
	return nil, errMissing
}

var errDriver = fmt.Errorf("exit status 9")
