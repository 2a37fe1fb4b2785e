package mockserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

const chatPath = "/v1/chat/completions"

// answered is a recorded exchange of a body, answered with a text of known length.
func answered(name, body, text string) fixtures.Replay {
	return fixtures.Replay{Name: name, Request: fixtures.Request{Method: "POST", Path: chatPath, Body: fixtures.Bytes(body)},
		Script: plain(text)}
}

func plain(text string) fixtures.Script {
	return fixtures.Script{Status: 200, End: fixtures.ScriptClose, Steps: []fixtures.ScriptStep{{Bytes: []byte(text)}},
		Header: map[string][]string{"Content-Length": {fmt.Sprint(len(text))}}}
}

// ofCase is a response of a case.
func ofCase(id, name, method, path, text string) fixtures.Replay {
	if name != "" {
		name = "/" + name
	}
	return fixtures.Replay{Name: id + name, Case: id, AnyBody: true, Request: fixtures.Request{Method: method, Path: path}, Script: plain(text)}
}

// missed reads the error of a miss.
func missed(t *testing.T, status, body string) miss {
	t.Helper()
	g := NewWithT(t)
	g.Expect(status).To(Equal("HTTP/1.1 404 Not Found"))
	var e struct{ Error miss }
	g.Expect(json.Unmarshal([]byte(body), &e)).To(Succeed(), body)
	g.Expect(e.Error.Type).To(Equal("replay_miss"))
	return e.Error
}

func TestEqualRequestsAreAnsweredInOrderAndOnceEach(t *testing.T) {
	g := NewWithT(t)
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{
		answered("r1", `{"a":1,"b":2}`, "one"), answered("other", `{"a":2}`, "other"), answered("r2", `{"b":2,"a":1}`, "two"),
	}})
	w := dial(t, p)
	for _, want := range []string{"one", "two"} {
		_, got := w.asked("POST", chatPath, "", `{ "b": 2, "a": 1 }`)
		g.Expect(got).To(Equal(want))
	}
	status, body := w.asked("POST", chatPath, "", `{"a":1,"b":2}`)
	m := missed(t, status, body)
	g.Expect(m.Code).To(Equal("replays_exhausted"))
	g.Expect(m.Message).To(ContainSubstring("all 2 recorded answers"))
	g.Expect(m.Nearest).To(Equal("r1"))
	_, got := w.asked("POST", chatPath, "", `{"a":2}`)
	g.Expect(got).To(Equal("other"), "others are not used up")
}

func TestANamedReplayIsGivenAsOftenAsItIsAskedFor(t *testing.T) {
	g := NewWithT(t)
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{answered("r1", `{"a":1}`, "one"), answered("r2", `{"a":2}`, "two")}})
	w := dial(t, p)
	for range 3 {
		_, got := w.asked("POST", chatPath, "r2", `{"a":1}`)
		g.Expect(got).To(Equal("two"), "the name goes before the digest")
	}
	status, body := w.asked("POST", chatPath, "r22", `{"a":1}`)
	m := missed(t, status, body)
	g.Expect(m.Code).To(Equal("unknown_replay"))
	g.Expect(m.Nearest).To(Equal("r2"))
	g.Expect(m.Message).To(ContainSubstring(`"r22"`))
	_, got := w.asked("POST", chatPath, "", `{"a":1}`)
	g.Expect(got).To(Equal("one"), "what was asked for by name is not used up")
}

func TestOneCaseAnswersAnyRequestToItsPath(t *testing.T) {
	g := NewWithT(t)
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{
		ofCase("c", "", "POST", chatPath, "faulty"), ofCase("c", "first", "POST", chatPath, "one"),
		ofCase("c", "second", "POST", chatPath, "faulty"), ofCase("c", "list", "GET", "/v1/models", "models of the case"),
	}})
	w := dial(t, p)
	for _, want := range []string{"one", "faulty", "one"} {
		_, got := w.asked("POST", chatPath, "", `{"whatever":1}`)
		g.Expect(got).To(Equal(want), "its exchanges in order, and again from the first")
	}
	_, got := w.asked("GET", "/v1/models", "", "")
	g.Expect(got).To(Equal("models of the case"))
	_, got = w.asked("POST", chatPath, "c", "")
	g.Expect(got).To(Equal("faulty"))
	_, got = w.asked("POST", chatPath, "c/first", "")
	g.Expect(got).To(Equal("one"))
	status, body := w.asked("POST", "/v1/completions", "", `{}`)
	m := missed(t, status, body)
	g.Expect(m.Message).To(ContainSubstring("the path"))
	g.Expect(m.Expected).To(Equal(chatPath))
	g.Expect(m.Received).To(Equal("/v1/completions"))
}

func TestSeveralCasesMustBeNamed(t *testing.T) {
	g := NewWithT(t)
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{ofCase("c", "", "POST", chatPath, "c"), ofCase("d", "", "POST", chatPath, "d"),
		ofCase("e", "", "GET", "/v1/models", "e"), ofCase("f", "", "GET", "/v1/models", "f")}})
	w := dial(t, p)
	status, body := w.asked("POST", chatPath, "", `{}`)
	m := missed(t, status, body)
	g.Expect(m.Code).To(Equal("replay_ambiguous"))
	g.Expect(m.Message).To(And(ContainSubstring("2 cases"), ContainSubstring(CaseHeader), ContainSubstring(`"c"`)))
	_, got := w.asked("POST", chatPath, "d", `{}`)
	g.Expect(got).To(Equal("d"))
	_, got = w.asked("GET", "/v1/models", "", "")
	g.Expect(got).To(ContainSubstring(fixtures.CaseModel), "none of the lists is the one")
}

func TestAMissNamesTheNearestRequestAndWhatDiffers(t *testing.T) {
	long := strings.Repeat("Describe the harbour. ", 40)
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{
		answered("far", `{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":1,"stop":["a","b"]}`, "x"),
		answered("near", `{"model":"m","messages":[{"role":"user","content":"`+long+`Is it winter?"}],"seed":9007199254740993,"a/b":0.50}`, "x"),
		answered("text", `not JSON at all`, "x"),
	}})
	for name, c := range map[string]struct {
		body                                 string
		nearest, pointer, expected, received string
	}{
		"a text": {`{"model":"m","messages":[{"role":"user","content":"` + long + `Is it summer?"}],"seed":9007199254740993,"a/b":0.5}`,
			"near", "/messages/0/content", `… the harbour. Is it winter?"`, `… the harbour. Is it summer?"`},
		"a number that only an integer holds": {`{"model":"m","messages":[{"role":"user","content":"` + long + `Is it winter?"}],"seed":9007199254740992,"a/b":0.5}`,
			"near", "/seed", `9007199254740993`, `9007199254740992`},
		"a member too many": {`{"model":"m","messages":[{"role":"user","content":"` + long + `Is it winter?"}],"seed":9007199254740993,"a/b":0.5,"n":{"x":1}}`,
			"near", "/n", `nothing`, `{"x":1}`},
		"a member too few, spelled as a pointer": {`{"model":"m","messages":[{"role":"user","content":"` + long + `Is it winter?"}],"seed":9007199254740993}`,
			"near", "/a~1b", `0.5`, `nothing`},
		"a list's length": {`{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":1,"stop":["a","b","c"]}`, "far", "/stop/2", `nothing`, `"c"`},
		"another type":    {`{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":1,"stop":"a"}`, "far", "/stop", `["a","b"]`, `"a"`},
		"no object":       {`7`, "far", "", `{"messages":[{"content":"Hi","role":"user"}],"model":"m","seed":1,"stop":["a","b…`, `7`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, body := dial(t, p).asked("POST", chatPath, "", c.body)
			m := missed(t, status, body)
			g.Expect(m.Code).To(Equal("no_replay"))
			g.Expect(m.Nearest).To(Equal(c.nearest))
			g.Expect(*m.Pointer).To(Equal(c.pointer))
			g.Expect(m.Expected).To(Equal(c.expected))
			g.Expect(m.Received).To(Equal(c.received))
			g.Expect(m.Message).To(And(ContainSubstring(c.nearest), ContainSubstring(c.expected), ContainSubstring(c.received)))
		})
	}
	t.Run("a body that is not JSON", func(t *testing.T) {
		g := NewWithT(t)
		status, body := dial(t, p).asked("POST", chatPath, "", `{"model":`)
		m := missed(t, status, body)
		g.Expect(m.Message).To(ContainSubstring("the body"))
		g.Expect(m.Received).To(Equal(`{"model":`))
	})
	t.Run("another method", func(t *testing.T) {
		g := NewWithT(t)
		status, body := dial(t, p).asked("PUT", chatPath, "", `{}`)
		m := missed(t, status, body)
		g.Expect(m.Message).To(ContainSubstring("the method"))
		g.Expect(m.Received).To(Equal("PUT"))
	})
}

func TestTheReplayerSaysOfItselfWhatNoReplaySays(t *testing.T) {
	g := NewWithT(t)
	p := replay(t, ReplayOptions{Replays: []fixtures.Replay{answered("r", `{"model":"tiny"}`, "x"), answered("s", `{"model":"large"}`, "x")}})
	w := dial(t, p)
	status, body := w.asked("GET", "/health", "", "")
	g.Expect(status).To(Equal("HTTP/1.1 200 OK"))
	g.Expect(body).To(MatchJSON(`{"status":"ok"}`))
	_, body = w.asked("GET", "/v1/models", "", "")
	g.Expect(body).To(MatchJSON(`{"object":"list","data":[
		{"id":"large","object":"model","created":0,"owned_by":"plumbline"},{"id":"tiny","object":"model","created":0,"owned_by":"plumbline"}]}`))

	health := fixtures.Replay{Name: "h", Request: fixtures.Request{Method: "GET", Path: "/health"}, Script: plain("recorded")}
	_, body = dial(t, replay(t, ReplayOptions{Replays: []fixtures.Replay{health}})).asked("GET", "/health", "", "")
	g.Expect(body).To(Equal("recorded"))
}
