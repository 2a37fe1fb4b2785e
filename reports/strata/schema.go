package strata

import (
	"bytes"
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"plumbline/reports/schema"
)

// Schema is the JSON Schema (2020-12) of the document.
//
//go:embed schema.json
var Schema []byte

// compiled is the schema, compiled once.
var compiled = sync.OnceValue(func() schema.Schema { return schema.MustCompile(Schema)[0] })

// schema records every departure from the schema.
func (v *validation) schema(data []byte) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		v.faultAt("", "not JSON: %v", err)
		return
	}
	compiled().Departures("", document, func(at jsontext.Pointer, message string) { v.faultAt(at, "%s", message) })
}
