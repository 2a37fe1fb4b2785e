package doctor

import "cmp"

// fit is how the plan's requests go into the engine's context.
type fit struct {
	need    int // tokens of the longest request: its prompt with the template's head, and its budget
	tooLong int // requests that do not fit
	counted bool
	own     bool // the engine's own tokenizer counted
	fails   Likelihood
}

// fit holds every request of the plan against the context. A prompt that does not fit without its reply is refused or cut by every
// engine; one that does not fit with it is refused by some and answered short by others.
func (e *evidence) fit() fit {
	f := fit{counted: true, own: true, fails: No}
	for _, p := range e.header.Plan {
		content := cmp.Or(p.EngineContentTokens, p.ContentTokens)
		if content == nil {
			f.counted = false
			continue
		}
		f.own = f.own && p.EngineContentTokens != nil
		head := e.profile.TemplateHead.Plain
		if p.Tools {
			head = e.profile.TemplateHead.Tools
		}
		need := *content + head + p.MaxOutputTokens
		f.need = max(f.need, need)
		room := e.header.Engine.ContextTokens
		if room == nil || need <= *room {
			continue
		}
		f.tooLong++
		if *content > *room {
			f.fails = Yes
		} else if f.fails == No {
			f.fails = Perhaps
		}
	}
	return f
}
