package strata

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Marshal writes the document as it stands in results.json: indented by two spaces, characters unescaped wherever JSON
// allows it, a final newline.
func (d *Document) Marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("write result document: %w", err)
	}
	return b.Bytes(), nil
}

// Parse reads a document back. It checks types only; Validate says whether the document is right. Of another runner's
// extensions it keeps those that this package knows, and an extension that is absent reads as null.
func Parse(data []byte) (*Document, error) {
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read result document: %w", err)
	}
	reasons := make(map[string]string, len(d.Missing))
	for _, m := range d.Missing {
		reasons[m.Key] = m.Value
	}
	err := d.nulls(func(at jsontext.Pointer, n nullable) error {
		if n == nil {
			return nil
		}
		reason, ok := reasons[string(at)]
		if !ok {
			reason = whyNotInDocument
		}
		n.explain(reason)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read result document: %w", err)
	}
	return &d, nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
