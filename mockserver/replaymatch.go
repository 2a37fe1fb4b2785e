package mockserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"plumbline/fixtures"
)

// answers finds the replay for a request.
type answers struct {
	all    []fixtures.Replay
	models []string // named by the recorded requests

	mu       sync.Mutex
	named    map[string]*queue // guarded by mu, as the two below
	digested map[string]*queue // by the request's digest
	open     map[string]*queue // by method and path: what states no body
}

// queue holds the replays of one key, in order.
type queue struct {
	replays []*fixtures.Replay
	next    int
}

func newAnswers(all []fixtures.Replay) *answers {
	a := &answers{all: all, named: map[string]*queue{}, digested: map[string]*queue{}, open: map[string]*queue{}}
	several := map[string]bool{} // cases with several exchanges
	for _, r := range all {
		if r.Case != "" && r.Name != r.Case {
			several[r.Case] = true
		}
	}
	models := map[string]bool{}
	for i := range all {
		r := &all[i]
		add(a.named, r.Name, r)
		switch {
		case !r.AnyBody:
			add(a.digested, r.Request.Digest(), r)
			if m := modelOf(r.Request.Body); m != "" {
				models[m] = true
			}
		case r.Name != r.Case || !several[r.Case]: // where a case has exchanges, its own response is one of them
			add(a.open, openKey(r.Request), r)
		}
	}
	a.models = slices.Sorted(maps.Keys(models))
	return a
}

func add(queues map[string]*queue, key string, r *fixtures.Replay) {
	if queues[key] == nil {
		queues[key] = &queue{}
	}
	queues[key].replays = append(queues[key].replays, r)
}

func openKey(r fixtures.Request) string { return r.Method + " " + r.Path }

// modelOf is the model that a request names, "" for none.
func modelOf(body []byte) string {
	var b struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	return b.Model
}

// find returns the script that answers a request: the one asked for by name, the next one recorded for it, or an
// answer of the replayer itself.
//
// Replays with the same digest are given in order and once each: a recording says nothing about what came later. Those
// found by name or by their path alone begin again after the last.
func (a *answers) find(name string, r fixtures.Request) fixtures.Script {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name != "" {
		if q := a.named[name]; q != nil {
			return q.again()
		}
		return a.unknown(name).script()
	}
	if q := a.digested[r.Digest()]; q != nil {
		if q.next == len(q.replays) {
			return q.exhausted().script()
		}
		return q.again()
	}
	q := a.open[openKey(r)]
	if q != nil && q.oneCase() {
		return q.again()
	}
	if own, ok := a.own(r); ok {
		return own
	}
	if q != nil {
		return q.ambiguous(r).script()
	}
	return a.nearest(r).script()
}

// again gives the next replay, and the first one after the last.
func (q *queue) again() fixtures.Script {
	if q.next == len(q.replays) {
		q.next = 0
	}
	q.next++
	return q.replays[q.next-1].Script
}

func (q *queue) oneCase() bool {
	return !slices.ContainsFunc(q.replays, func(r *fixtures.Replay) bool { return r.Case != q.replays[0].Case })
}

// own is what the replayer says of itself.
func (a *answers) own(r fixtures.Request) (fixtures.Script, bool) {
	switch openKey(r) {
	case http.MethodGet + " /health":
		return jsonScript(http.StatusOK, object{"status": "ok"}), true
	case http.MethodGet + " /v1/models":
		models := a.models
		if len(models) == 0 {
			models = []string{fixtures.CaseModel} // cases name none, and their replies are of this one
		}
		data := []object{}
		for _, m := range models {
			data = append(data, object{"id": m, "object": "model", "created": 0, "owned_by": "plumbline"})
		}
		return jsonScript(http.StatusOK, object{"object": "list", "data": data}), true
	}
	return fixtures.Script{}, false
}

func (q *queue) exhausted() miss {
	return miss{Code: "replays_exhausted", Nearest: q.replays[0].Name, Message: fmt.Sprintf(
		"find a replay: all %d recorded answers to this request have been given; name one with the header %s to get it again",
		len(q.replays), CaseHeader)}
}

func (q *queue) ambiguous(r fixtures.Request) miss {
	return miss{Code: "replay_ambiguous", Nearest: q.replays[0].Name, Message: fmt.Sprintf(
		"find a replay: %d cases answer %s %q; name one with the header %s, such as %q",
		len(q.replays), r.Method, cutText(r.Path), CaseHeader, q.replays[0].Name)}
}
