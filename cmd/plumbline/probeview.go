package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"plumbline/fixtures"
	"plumbline/harness/transcript"
)

// show prints a probe for a person: what was asked, what came and when, what is wrong where, and the verdict.
func (p *probe) show(w io.Writer, differences []string) {
	fmt.Fprintf(w, "%s\n  %s\n", p.c.ID, p.c.Summary)
	for i, e := range p.exchanges {
		request, name := p.c.Request, ""
		if i < len(p.c.Exchanges) {
			request, name = p.c.Exchanges[i].Request, p.c.Exchanges[i].Name+": "
		}
		fmt.Fprintf(w, "  asked      %s%s %s %s\n", name, request.Method, request.Endpoint, inWords(request))
		timeline(w, e)
	}
	for _, f := range p.judgement.Findings {
		place := ""
		if f.Event >= 0 {
			place = fmt.Sprintf(", event %d", f.Event)
		}
		if f.Path != "" {
			place += ", " + f.Path
		}
		fmt.Fprintf(w, "  found      %s (%s%s): %s\n", f.ID, f.Severity, place, f.Sentence)
	}
	if p.judgement.Task != "" {
		fmt.Fprintf(w, "  task       %s: %s\n", p.judgement.Checks["task"], p.judgement.Task)
	}
	fmt.Fprintf(w, "  verdict    %s", p.judgement.Outcome)
	switch {
	case len(differences) > 0:
		fmt.Fprintln(w, ", which is not what was expected")
		for _, d := range differences {
			fmt.Fprintf(w, "  differs    %s\n", d)
		}
	case p.url == "" && p.c.Expect != nil:
		fmt.Fprintln(w, ", as expected")
	default:
		fmt.Fprintln(w)
	}
}

// inWords are the parameters of a request as the case states them.
func inWords(r fixtures.CaseRequest) string {
	var words []string
	for name, v := range gjson.ParseBytes(r.Raw).ForEach {
		if n := name.Str; n == "endpoint" || n == "method" || v.Type == gjson.Null {
			continue
		}
		words = append(words, name.Str+"="+clip(v.Get("@ugly").Raw))
	}
	return strings.Join(words, " ")
}

// The lines of a long stream that are shown: its beginning and its end.
const headLines, tailLines = 40, 12

func timeline(w io.Writer, e *fixtures.Exchange) {
	var lines []string
	line := func(at time.Duration, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%9.1f ms  ", float64(at)/float64(time.Millisecond))+fmt.Sprintf(format, args...))
	}
	if e.Response != nil {
		line(e.Response.At, "HTTP %d %s", e.Response.Status, strings.Join(e.Response.Header["Content-Type"], " "))
	}
	t := transcript.Read(e)
	for i, ev := range t.Events {
		for _, part := range parts(ev) {
			line(ev.At, "event %-3d %s", i, part)
		}
	}
	if len(t.Events) == 0 && e.Size() > 0 {
		var body []byte
		for _, p := range e.Pieces {
			body = append(body, p.Bytes[:min(len(p.Bytes), lineLimit)]...)
		}
		line(e.Pieces[len(e.Pieces)-1].At, "body      %d bytes %s", e.Size(), clip(string(body)))
	}
	line(e.End.At, "end       %s %s", e.End.Kind, clip(e.End.Error))
	if len(lines) > headLines+tailLines {
		left := len(lines) - headLines - tailLines
		lines = slices.Concat(lines[:headLines], []string{fmt.Sprintf("%12s  … %d more", "", left)}, lines[len(lines)-tailLines:])
	}
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\n", l)
	}
}

// parts say what an event brings, one line each.
func parts(ev transcript.Event) []string {
	data := strings.TrimSpace(string(ev.Data))
	if data == "[DONE]" {
		return []string{"done"}
	}
	chunk := gjson.Parse(data)
	if !gjson.Valid(data) || !chunk.IsObject() {
		return []string{"unreadable " + clip(data)}
	}
	var all []string
	say := func(kind string, v gjson.Result) {
		if v.Exists() && v.Type != gjson.Null {
			all = append(all, fmt.Sprintf("%-10s %s", kind, clip(v.Raw)))
		}
	}
	say("error", chunk.Get("error"))
	choice := chunk.Get("choices.0")
	say("role", choice.Get("delta.role"))
	say("reasoning", choice.Get("delta.reasoning_content"))
	say("reasoning", choice.Get("delta.reasoning"))
	say("content", choice.Get("delta.content"))
	say("tool call", choice.Get("delta.tool_calls"))
	say("finish", choice.Get("finish_reason"))
	say("usage", chunk.Get("usage"))
	say("timings", chunk.Get("timings"))
	if len(all) == 0 {
		all = append(all, "nothing    "+clip(data))
	}
	return all
}

// lineLimit is how much of a text is shown, in characters.
const lineLimit = 100

// clip is a text on one line, shortened, with what no terminal should get made visible.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if r := []rune(s); len(r) > lineLimit {
		return string(r[:lineLimit]) + "…"
	}
	return s
}
