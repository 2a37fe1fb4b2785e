package engine

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

func TestAServerThatRepeatsTheKeyInItsFactsDoesNotBringItIntoTheRecord(t *testing.T) {
	g := NewWithT(t)
	const key = `sk-a/b"c`
	spelt := `sk-a\/b\"c`
	pages := map[string]string{
		"/health":    `{"service":"strata"}`,
		"/v1/status": `{"service":"strata","engine":"1 ` + spelt + `"}`,
		"/v1/models": `{"data":[{"id":"m-` + spelt + `","aliases":["a-` + spelt + `"]}]}`,
		"/props":     `{"model_path":"/m/` + spelt + `","chat_template":"x ` + spelt + `"}`,
		"/metrics":   `{"engine":{"build_kind":"` + spelt + `","commit":"` + spelt + `","kv":"` + spelt + `","list":["` + spelt + `"],"o-` + spelt + `":"1"}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(pages[r.URL.Path])) }))
	defer s.Close()
	facts, err := Ask(t.Context(), s.URL, bearer(key), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Version).To(Equal("1 [redacted]"))
	g.Expect(facts.ServedModels).To(Equal([]string{"m-[redacted]"}))
	g.Expect(facts.ModelAliases).To(Equal(map[string]string{"a-[redacted]": "m-[redacted]"}))
	g.Expect(facts.Options).To(Equal(map[string]string{"kv": "[redacted]", "list": `["[redacted]"]`, "o-[redacted]": "1"}))
	record, err := json.Marshal(facts)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(record)).To(ContainSubstring("x [redacted]"))
	g.Expect(string(record)).NotTo(ContainSubstring("sk-a"))

	after, err := After(t.Context(), s.URL, bearer(key), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.ServedModels).To(Equal(facts.ServedModels), "or the model would seem to have changed")

	_, err = ResolveModel(facts, "")
	g.Expect(problem(err)).To(Equal(UnknownModel))
	g.Expect(err).To(MatchError(ContainSubstring("API key")), "it cannot be asked for by a name that is not recorded")
}

// fill puts the key into every text that facts can hold.
func fill(v reflect.Value) {
	const text = "text " + key
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf(text))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

func TestEveryTextOfTheFactsIsScrubbed(t *testing.T) {
	g := NewWithT(t)
	var facts fixtures.EngineFacts
	fill(reflect.ValueOf(&facts).Elem())
	facts = newCaller("http://h", bearer(key), Options{}).clean(facts)
	g.Expect(facts.Version).To(Equal("text [redacted]"))
	g.Expect([]string{facts.Kind, facts.URL, facts.Name}).To(HaveEach("text "+key), "our own words, not the server's")
	facts.Kind, facts.URL, facts.Name = "", "", ""
	record, err := json.Marshal(facts)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(record)).NotTo(ContainSubstring(key))
}

func TestAKeyThatIsACommonWordLeavesTheEnginesNameAndAVeryShortOneAllFacts(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, map[string]string{"GET /v1/models": "vllm/models.json", "GET /version": "vllm/version.json"})
	plain, err := Ask(t.Context(), s.URL, nil, quick)
	g.Expect(err).NotTo(HaveOccurred())
	short, err := Ask(t.Context(), s.URL, bearer("m"), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(short).To(Equal(plain))
	word, err := Ask(t.Context(), s.URL, bearer("vllm"), quick)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(word.Name).To(Equal("vllm"))
}

func TestOfTwoSecretsThatBeginAlikeNoRestStays(t *testing.T) {
	header := http.Header{"Authorization": {"Bearer abcdef"}, "X-Key": {"abcd", "abcdefgh"}}
	got := newScrubber(header).Replace("Bearer abcdef, abcdefgh abcdef abcd ABCD")
	NewWithT(t).Expect(got).To(Equal("[redacted], [redacted] [redacted] [redacted] ABCD"))
}
