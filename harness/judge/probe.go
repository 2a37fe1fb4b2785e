package judge

import (
	"fmt"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// refusals are the findings of a reply that is a refusal. Where one was asked for they are no findings.
var refusals = []string{transcript.HTTP4xx, transcript.HTTP5xx, transcript.AuthRejected, transcript.ModelNotFound,
	transcript.TemplateError, transcript.InBandError, transcript.Status200ForClientError, transcript.NonstandardErrorField}

// probes judge replies to requests that a right server refuses.
var probes = map[string]func(*asked, fixtures.CaseTask) result{
	"expect_status": func(x *asked, t fixtures.CaseTask) result {
		want, ok := t.Int()
		if !ok {
			return unknown("the task names no status")
		}
		return x.refusal(want)
	},
	"expect_rejection": func(x *asked, _ fixtures.CaseTask) result { return x.refusal(400) },
}

// busy says that the server would have refused anything.
func busy(status int) bool { return status == 429 || status == 503 }

// refusal judges the status of a reply to a request that should get the wanted one. Another status of the same kind
// will do: 403 for 401, 413 or 422 for 400.
func (x *asked) refusal(want int) result {
	if x.e.Response == nil || x.e.Response.Status == 0 {
		return unknown("there is no answer to judge")
	}
	got := x.e.Response.Status
	auth := want == 401 || want == 403
	switch {
	case got == want && want/100 != 2:
		x.drop(append(refusals, transcript.Overloaded, transcript.RateLimited)...)
		return right(fmt.Sprintf("refused with %d", got))
	case want/100 == 2 && got/100 == 2 && x.own() != Error:
		return right(fmt.Sprintf("answered with %d", got))
	case want/100 == 2 || busy(got):
		return unknown(fmt.Sprintf("answered with %d, expected %d", got, want))
	case auth:
		return x.authProbe(got, want)
	case got/100 == 4 && got != 401 && got != 403:
		x.drop(refusals...)
		return right(fmt.Sprintf("refused with %d", got))
	case got/100 == 4:
		return unknown(fmt.Sprintf("answered with %d before the request itself was looked at", got))
	case got/100 == 5:
		x.drop(refusals...)
		x.add(BadRequestAs500, fmt.Sprintf("%d, expected %d", got, want))
		return wrong("answered with %d, expected %d", got, want)
	case x.t.Error != nil:
		x.drop(refusals...)
		x.add(transcript.Status200ForClientError, fmt.Sprintf("%d with an error in the body, expected %d", got, want))
		return wrong("answered with %d, expected %d", got, want)
	case !x.e.Whole() || x.own() == Error:
		return unknown("the answer cannot be judged")
	case x.p.MessageJSONEscape != "" && x.t.FinishReason != nil:
		// Text that is odd but can be mended may be answered as well as refused.
		return right("answered")
	case has(x.found, PromptTruncated):
		return wrong("answered with %d after a part of the prompt was dropped, expected a refusal", got)
	}
	x.add(transcript.Status200ForClientError, fmt.Sprintf("%d, expected %d", got, want))
	return wrong("answered with %d, expected %d", got, want)
}

func (x *asked) authProbe(got, want int) result {
	switch {
	case got == 401 || got == 403:
		x.drop(refusals...)
		return right(fmt.Sprintf("refused with %d", got))
	case got/100 == 2 && x.t.Error == nil:
		if !x.e.Whole() || x.own() == Error {
			return unknown("the answer cannot be judged")
		}
		x.add(AuthNotEnforced, fmt.Sprintf("%d, expected %d", got, want))
		return wrong("a wrong key was answered with %d, expected %d", got, want)
	}
	x.drop(refusals...)
	x.add(AuthStatusWrong, fmt.Sprintf("%d, expected %d", got, want))
	return wrong("a wrong key was answered with %d, expected %d", got, want)
}
