package judge

import "plumbline/harness/transcript"

// checks gives the state of every check: the worst that a finding makes of it, and for the rest whether there was
// anything to look at.
func (v *verdict) checks() map[string]string {
	all := map[string]string{}
	for _, name := range checkNames {
		all[name] = stateNA
	}
	if v.focus == nil {
		return all
	}
	v.focus.seen(all)
	var found []transcript.Finding
	isolated := 0
	for _, x := range v.all {
		found = append(found, x.found...)
		if x.answered() {
			isolated++
		}
	}
	if isolated > 1 {
		all[checkIsolation] = stateOK
	}
	for _, f := range append(found, v.joint...) {
		for _, e := range effectsOf(f) {
			if rank[e.state] > rank[all[e.check]] {
				all[e.check] = e.state
			}
		}
	}
	all[checkTask] = v.focus.task.state
	for _, x := range v.all {
		if x.silent() && x.e.Response == nil {
			all[checkTransport] = stateFail
		}
	}
	return all
}

// seen sets the checks that one exchange gives something to look at. Without an answer what an answer would show is
// unknown.
func (x *asked) seen(all map[string]string) {
	if x.e.Response == nil {
		all[checkTransport] = stateUnknown
		return
	}
	all[checkTransport] = stateOK
	if !x.chat {
		all[checkShape] = stateOK
		return
	}
	if x.e.Response.Status/100 != 2 {
		return
	}
	if x.t.Stream {
		all[checkFraming] = stateOK
	}
	answer := stateOK
	if x.own() == Error {
		answer = stateUnknown
	}
	all[checkShape] = answer
	if x.t.Reasoning != "" {
		all[checkReasoning] = answer
	}
	if len(x.p.Tools) > 0 {
		all[checkCalls] = answer
	}
	if x.t.Usage != nil {
		all[checkUsage] = answer
	}
	if x.t.Timings != nil {
		all[checkTimings] = answer
	}
	if !x.t.Untimed && x.f.TTFT.Known {
		all[checkPerformance] = answer
	}
}
