package mockserver

import (
	_ "embed"
	"fmt"
	"net/http"
)

// chatTemplate is how the engine would lay out a conversation. It is told, never run: prompts are only counted.
//
//go:embed chat_template.jinja
var chatTemplate string

// object is a JSON object that is written once and has no type of its own.
type object map[string]any

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, object{"status": "ok"})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	created := s.began
	if !s.opts.Epoch.IsZero() {
		created = s.opts.Epoch
	}
	writeJSON(w, http.StatusOK, object{
		"object": "list",
		"data": []object{{
			"id": s.opts.Model, "object": "model", "created": created.Unix(), "owned_by": "plumbline",
			"meta": object{"n_ctx": s.opts.ContextTokens},
		}},
	})
}

// props has no model_path: there is no model file.
func (s *Server) props(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, object{
		"engine":                      name,
		"build_info":                  buildInfo,
		"model_alias":                 s.opts.Model,
		"total_slots":                 s.opts.Slots,
		"chat_template":               chatTemplate,
		"default_generation_settings": object{"n_ctx": s.opts.ContextTokens},
	})
}

// status tells the engine's load as Strata does. activity.requests counts the replies begun since the start.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	a := s.slots.activity()
	writeJSON(w, http.StatusOK, object{
		"engine":      object{"name": name, "version": version},
		"model":       s.opts.Model,
		"concurrency": object{"serving": s.opts.Slots},
		"activity":    object{"requests": a.started, "in_flight": a.busy, "queued": a.queued},
	})
}

func (s *Server) slotList(w http.ResponseWriter, _ *http.Request) {
	list := []object{}
	for slot, task := range s.slots.activity().tasks {
		entry := object{"id": slot, "n_ctx": s.opts.ContextTokens, "speculative": false, "is_processing": task != 0}
		if task != 0 {
			entry["id_task"] = task
		}
		list = append(list, entry)
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, object{"engine": name, "version": version})
}

// metrics is the Prometheus text format.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	a, t := s.slots.activity(), s.soFar()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"requests_total", "counter", "Requests that got a slot", float64(a.started)},
		{"prompt_tokens_total", "counter", "Prompt tokens read for finished replies", float64(t.promptTokens)},
		{"prompt_seconds_total", "counter", "Time spent on reading prompts", t.promptTime.Seconds()},
		{"tokens_predicted_total", "counter", "Tokens generated for finished replies", float64(t.predictedTokens)},
		{"tokens_predicted_seconds_total", "counter", "Time spent on generating tokens", t.predictedTime.Seconds()},
		{"requests_processing", "gauge", "Requests that hold a slot", float64(a.busy)},
		{"requests_deferred", "gauge", "Requests that wait for a slot", float64(a.queued)},
	} {
		fmt.Fprintf(w, "# HELP plumbline_mock:%s %s\n# TYPE plumbline_mock:%[1]s %[3]s\nplumbline_mock:%[1]s %[4]v\n",
			m.name, m.help, m.kind, m.value)
	}
}

// tokens answers with a text's token ids.
func (s *Server) tokens(w http.ResponseWriter, r *http.Request) {
	body, refusal := readBody(w, r)
	var req struct {
		Content *string `json:"content"`
	}
	if refusal == nil {
		refusal = decode("", body, &req)
	}
	if refusal == nil && req.Content == nil {
		refusal = invalid("content", "read field \"content\": expected a string, received none")
	}
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	writeJSON(w, http.StatusOK, object{"tokens": s.tokenize(*req.Content)})
}
