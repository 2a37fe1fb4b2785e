package settings

import (
	"cmp"
	"slices"
	"strings"

	"plumbline/fixtures/engines"
)

// The names of engines without a recipe.
const (
	EngineLive = "live" // the server at URL
	EngineMock = "mock" // the one built in
	// EngineReplay gives recorded responses again.
	EngineReplay = "replay"
)

// withoutRecipe are the engines that need no recipe.
var withoutRecipe = []string{EngineLive, EngineMock, EngineReplay}

// EngineName is how the engine is had: what --engine says, else live with an address and the built-in mock without.
func (s *Settings) EngineName() string {
	if s.Engine == "" && s.URL != "" {
		return EngineLive
	}
	return cmp.Or(s.Engine, EngineMock)
}

// Started says whether the engine is started for the run from a recipe, and by which.
func (s *Settings) Started() (recipe string, form engines.Form, started bool) {
	return engines.Parse(s.EngineName())
}

// ofStarted are the settings that only a started engine heeds, with its form where only one does.
var ofStarted = []struct {
	flag string
	form engines.Form
}{
	{"image", engines.FormContainer}, {"engine-pull", engines.FormContainer}, {"command", engines.FormProcess},
	{"engine-arg", ""}, {"engine-port", ""}, {"engine-start-timeout", ""}, {"keep-engine-log", ""},
}

// checkEngine refuses settings that contradict how the engine is had, rather than leave one of them without effect.
func (s *Settings) checkEngine(bad func(flag, format string, args ...any)) {
	name := s.EngineName()
	_, form, started := s.Started()
	switch {
	case !started && !slices.Contains(withoutRecipe, name):
		valid := slices.Concat(withoutRecipe, engines.Engines())
		bad("engine", "there is no such engine; %svalid: %s", suggestion(name, valid), strings.Join(valid, " "))
		return
	case name == EngineLive && s.URL == "":
		bad("engine", "a live server has an address: give it with --url")
	case name != EngineLive && s.URL != "":
		bad("engine", "it contradicts %s: a server that is there already is not started; leave one of them out", s.cite("url"))
	case name == EngineReplay && len(s.Replay) == 0:
		bad("engine", "a replay needs what was recorded: give a run's outputs.jsonl with --replay")
	}
	if len(s.Replay) > 0 && name != EngineReplay {
		bad("replay", "it is what the engine %q answers with: choose that with --engine, or leave it out", EngineReplay)
	}
	if s.From("mock-pace") != FromDefault && name != EngineMock {
		with := "engine"
		if s.URL != "" {
			with = "url"
		}
		bad("mock-pace", "it contradicts %s: only the built-in mock engine has a pace; leave one of them out", s.cite(with))
	}
	for _, o := range ofStarted {
		if s.From(o.flag) == FromDefault {
			continue
		}
		switch {
		case !started:
			bad(o.flag, "it says how an engine is started, and none is: choose one with --engine, such as %q, or leave it out",
				"llama.cpp-"+string(cmp.Or(o.form, engines.FormProcess)))
		case o.form != "" && o.form != form:
			bad(o.flag, "it contradicts %s: it is for a %s; leave one of them out", s.cite("engine"), o.form)
		}
	}
}

// checkEngineArgs refuses a key among the engine's arguments: others could read it there, and the record would keep it.
func (s *Settings) checkEngineArgs() []error {
	for _, arg := range s.EngineArg {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "-") && holdsCredential(name) {
			f, _ := byFlag("engine-arg")
			o := s.origins["engine-arg"]
			return []error{&Fault{Name: o.name(f), Value: name, Where: o.where,
				Problem: "a key is never taken from here, where others could read it: name its place with --credential-env or " +
					"--credential-file; recipes hand it on in the engine's environment"}}
		}
	}
	return nil
}
