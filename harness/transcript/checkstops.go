package transcript

import "strings"

// checkStops looks for stop strings in the answer. A server cuts the answer in front of one.
func (r *reader) checkStops() {
	if r.asked.stopsWanted {
		return
	}
	for _, stop := range r.asked.stops {
		switch {
		case strings.Contains(r.t.Content, stop):
			r.add(StopIgnored, -1, "choices[0].delta.content", quote([]byte(stop)))
		case r.t.reason() == "stop":
			if p := leakedPrefix(r.t.Content, stop); p != "" {
				r.add(StopPrefixLeaked, -1, "choices[0].delta.content", quote([]byte(p)))
			}
		}
	}
}

// leakedPrefix is the longest beginning of a stop string that the answer ends with. One letter or mere white space is
// none, for many an answer ends so by itself.
func leakedPrefix(content, stop string) string {
	for n := len(stop) - 1; n >= 2; n-- {
		if strings.HasSuffix(content, stop[:n]) {
			if blank(stop[:n]) {
				return ""
			}
			return stop[:n]
		}
	}
	return ""
}
