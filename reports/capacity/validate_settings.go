package capacity

import (
	"net/url"
	"strings"
)

// settings holds the settings against each other.
func (v *validation) settings() {
	r := v.root
	wordsAt, policyAt := r.get("response_words"), r.get("controlled_output_policy")
	words, counted := wordsAt.whole()
	if policy, _ := policyAt.text(); policy == "strict" && counted && words == 0 {
		v.contradiction(policyAt, []place{wordsAt}, `expected "observe" without response_words, received "strict"`)
	}
	canaries, _ := r.get("request_canaries").truth()
	if tokens, ok := r.get("max_tokens").whole(); ok && canaries && tokens < 16 {
		v.contradiction(r.get("max_tokens"), []place{r.get("request_canaries")},
			"expected at least 16 with request canaries, received %d", tokens)
	}
	flags, modeAt := r.get("serve_flags"), r.get("prompt_cache_mode")
	if mode, _ := modeAt.text(); mode == cacheUnique {
		v.wantWhole(r.get("shared_prefix_tokens"), 0, "in unique mode", modeAt)
		v.wantTruth(flags.get("shared_prefix_burst"), false, "in unique mode", modeAt)
	}
	thinking, told := flags.get("thinking_mode").text()
	if !told {
		return
	}
	v.wantTruth(flags.get("no_thinking"), thinking == thinkingOff, "by thinking_mode", flags.get("thinking_mode"))
	if thinking == thinkingOff || thinking == thinkingOn {
		v.wantNull(flags.get("reasoning_effort"), "beside the thinking mode "+thinking, flags.get("thinking_mode"))
	}
}

// address checks that the engine's address is one that may be shown: without what identifies an operator or a request.
func (v *validation) address() {
	p := v.root.get("base_url")
	text, ok := p.text()
	if !ok || text == redacted {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?# \t\n") {
		v.problem(p,
			"expected %q, or an absolute URL with http or https and without user, query and fragment, received %s", redacted, p)
	}
}

// sampling holds what was asked for against what was sent.
func (v *validation) sampling() {
	for _, name := range []string{"temperature", "top_p"} {
		s := v.root.get("sampling", name)
		sentAt, requested, effective := s.get("sent"), s.get("requested"), s.get("effective_request")
		sent, ok := sentAt.truth()
		want, asked := requested.number()
		switch {
		case !ok:
		case !sent:
			v.wantNull(effective, "of what was not sent", sentAt, requested)
		case effective.null():
			v.contradiction(effective, []place{sentAt, requested}, "expected the value that was sent, received null")
		case asked:
			v.wantNumber(effective, want, 0, "as requested", requested, sentAt)
		case requested.null() && name == "temperature":
			v.wantNumber(effective, 0, 0, "of what was not requested", requested, sentAt) // as older writers send
		case requested.null():
			v.contradiction(sentAt, []place{requested, effective}, "expected false of what was not requested, received true")
		}
	}
}
