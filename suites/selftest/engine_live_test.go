package selftest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/corpus"
	"plumbline/harness/plan"
	"plumbline/mockserver"
	"plumbline/reports/strata"
)

// realServer serves the mock's replies under another engine's name. It names modelPath as its file, when that is not "".
func realServer(t *testing.T, modelPath string) string {
	t.Helper()
	pack, err := corpus.Default()
	if err != nil {
		t.Fatal(err)
	}
	mock, err := mockserver.Start(t.Context(), mockserver.Options{Pack: pack, Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case plan.ChatPath, "/tokenize":
			mock.Handler().ServeHTTP(w, r)
		case "/v1/models":
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"llamacpp","meta":{"n_ctx":131072}}]}`)
		case "/props":
			if modelPath != "" {
				_, _ = io.WriteString(w, `{"build_info":"b10573-abcdef0","model_path":"`+modelPath+`","total_slots":4}`)
				return
			}
			fallthrough
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestARunOnALiveServerConformsWithAModelFileAndSaysWithoutWhatLacks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tiny.gguf")
	if err := os.WriteFile(file, []byte("weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string // the server's
		args []string
		why  []string
	}{
		"the operator names it":    {"", []string{"--model-file", file}, []string{}},
		"the server names it":      {file, nil, []string{}},
		"nobody names it":          {"", nil, []string{"model_path_untold"}},
		"it is not on this host":   {"/elsewhere/tiny.gguf", nil, []string{"model_file_not_on_host"}},
		"it was not to be hashed":  {file, []string{"--skip-model-hash"}, []string{"model_hash_skipped"}},
		"what is named is missing": {"", []string{"--model-file", filepath.Join(dir, "none.gguf")}, []string{"model_file_unread"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := run(t, nil, with(c.args, "--url", realServer(t, c.path))...)
			g.Expect(r.exit).To(BeZero(), r.output)
			doc := r.document(t)
			g.Expect(doc.Extensions.StatusReasonCodes).To(Equal(c.why))
			g.Expect(doc.Run.Status == strata.Conforming).To(Equal(len(c.why) == 0))
			_, listed := doc.Model.Files.Get()
			g.Expect(listed).To(Equal(len(c.why) == 0))
		})
	}
}
