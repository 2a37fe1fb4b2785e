package judge_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
	"plumbline/harness/judge"
)

// TestEveryCaseIsARow reads the cases as replies of a capacity run. Those that leave nothing to measure are in their class;
// of the others it is enough that they are rows.
func TestEveryCaseIsARow(t *testing.T) {
	want := map[string]string{
		"auth-01-401-json":                        "request_error http_401",
		"conc-01-503-without-retry-after":         "request_error http_503",
		"conc-06-keepalive-hides-a-dead-stream":   "request_error idle-timeout",
		"err-01-error-after-tokens":               "stream_validation_failed in_band_error",
		"err-02-error-instead-of-tokens":          "stream_validation_failed in_band_error",
		"err-04-html-with-status-200":             "request_error not_event_stream",
		"err-05-connection-reset-mid-stream":      "request_error reset",
		"sse-26-cut-mid-json":                     "request_error truncate",
		"sse-13-missing-done":                     "stream_validation_failed missing_done",
		"sse-14-finished-but-left-open":           "request_error idle-timeout",
		"sse-20-error-as-field-name":              "stream_validation_failed in_band_error",
		"sse-25-error-glued-to-open-event":        "request_error malformed_event",
		"shape-05-finish-reason-empty-string":     "",
		"shape-08-finish-reason-error":            "stream_validation_failed finish_reason_error",
		"shape-11-new-id-in-every-chunk":          "",
		"shape-17-stream-true-answered-with-json": "request_error not_event_stream",
		"reason-10-budget-spent-thinking":         "stream_validation_failed no_visible_content",
		"timing-16-non-finite-logprob-500":        "request_error http_500",
		"uni-04-raw-invalid-utf8":                 "request_error invalid_utf8",
		"usage-01-not-sent":                       "",
		"sse-22-gzip-body":                        "",
	}
	for _, c := range cases(t) {
		for _, r := range []fixtures.LoadRequest{{}, {Marker: "ANVIL_REQ_0_00000", ResponseWords: 3, Word: "plumb", Strict: true}} {
			for i, e := range played(t, c) {
				row := judge.Row(r, e)
				class, named := want[c.ID]
				if r.Marker != "" || i > 0 || !named {
					continue
				}
				got := ""
				if row.Failure != nil {
					got = row.Failure.Class + " " + row.Failure.Type
				}
				NewWithT(t).Expect(got).To(Equal(class), c.ID)
				delete(want, c.ID)
			}
		}
	}
	NewWithT(t).Expect(want).To(BeEmpty(), "ids that are no cases")
}
