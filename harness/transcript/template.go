package transcript

import "regexp"

// templateWords name a chat template or the language that it is written in, as errors of applying one do.
var templateWords = regexp.MustCompile(`(?i)jinja|chat[ _-]?template|template ?(error|syntax|assertion)|apply[ _]template|roles must alternate`)

// template tells a failed chat template from other errors of the server by the error's text.
func (r *reader) template() {
	if e := r.t.Error; e != nil && (templateWords.MatchString(e.Message) || templateWords.MatchString(e.Type)) {
		r.add(TemplateError, e.Event, "", quote([]byte(e.Message)))
	}
}
