package mockserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
)

// apiError is a refusal in the interface's own shape; nil where a request is right.
type apiError struct {
	status  int
	kind    string
	code    string
	param   string // the field that is wrong, "" for none
	message string
	// Sizes of a request that does not fit; 0 elsewhere.
	promptTokens, contextTokens int
	// retry asks the client to come back after a second.
	retry bool
}

// invalid is a refusal of a field's value.
func invalid(param, format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: "invalid_request_error", code: "invalid_value", param: param,
		message: fmt.Sprintf(format, args...),
	}
}

// errorBody is the error on the wire.
type errorBody struct {
	Error struct {
		Message       string  `json:"message"`
		Type          string  `json:"type"`
		Code          string  `json:"code"`
		Param         *string `json:"param"`
		PromptTokens  int     `json:"n_prompt_tokens,omitempty"`
		ContextTokens int     `json:"n_ctx,omitempty"`
	} `json:"error"`
}

func (e *apiError) body() errorBody {
	var b errorBody
	b.Error.Message, b.Error.Type, b.Error.Code = e.message, e.kind, e.code
	b.Error.PromptTokens, b.Error.ContextTokens = e.promptTokens, e.contextTokens
	if e.param != "" {
		b.Error.Param = &e.param
	}
	return b
}

func writeError(w http.ResponseWriter, err *apiError) {
	if err.retry {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, err.status, err.body())
}

// decode reads JSON into v. param is where the JSON stands in the request, "" for the body itself; the error names the
// field that is wrong.
func decode(param string, data []byte, v any) *apiError {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		e := invalid(param, "read the request: expected JSON: %v", err)
		e.code = "invalid_json"
		return e
	}
	where := param
	if mismatch.Field != "" {
		if where != "" {
			where += "."
		}
		where += mismatch.Field
	}
	name := "the body"
	if where != "" {
		name = fmt.Sprintf("field %q", where)
	}
	e := invalid(where, "read %s: expected %s, received %s", name, jsonKind(mismatch.Type), mismatch.Value)
	e.code = "invalid_type"
	return e
}

// jsonKind is the JSON word for a Go type.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
}
