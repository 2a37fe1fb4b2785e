package strata

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// visitor is called for every field of a document that is null, in document order. The nullable is nil for a null
// inside a raw object, which has no place for a reason of its own.
type visitor func(at jsontext.Pointer, n nullable) error

// seal makes the list of missing values: one entry for each null, in document order. A null without a reason, or a
// list that would be written as null, is an error that names the place.
func (d *Document) seal() error {
	d.Missing = Ordered[string]{}
	missing := Ordered[string]{}
	err := d.nulls(func(at jsontext.Pointer, n nullable) error {
		reason := whySentAsNull
		if n != nil {
			reason = n.why()
		}
		if reason == "" {
			return fmt.Errorf("expected a reason beside the null at %q, received none", at)
		}
		missing = append(missing, Member[string]{string(at), reason})
		return nil
	})
	d.Missing = missing
	return err
}

// nulls visits every null of the document.
func (d *Document) nulls(visit visitor) error { return walk("", reflect.ValueOf(d).Elem(), visit) }

func walk(at jsontext.Pointer, v reflect.Value, visit visitor) error {
	switch x := v.Addr().Interface().(type) {
	case *json.RawMessage:
		return rawNulls(at, *x, visit)
	case nullable:
		if x.isNull() {
			return visit(at, x)
		}
		return walk(at, reflect.ValueOf(x.held()).Elem(), visit)
	case members:
		for i := range x.length() {
			key, value := x.member(i)
			if err := walk(at.AppendToken(key), reflect.ValueOf(value).Elem(), visit); err != nil {
				return err
			}
		}
		return nil
	case *Number:
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if err := walk(at.AppendToken(name), v.Field(i), visit); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return visit(at, noList{})
		}
		for i := range v.Len() {
			if err := walk(at.AppendToken(strconv.Itoa(i)), v.Index(i), visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// noList is a list that nobody made: it would be written as null, and has no reason.
type noList struct{}

func (noList) isNull() bool   { return true }
func (noList) why() string    { return "" }
func (noList) explain(string) {}
func (noList) held() any      { return nil }

// rawNulls visits the nulls inside a raw JSON value.
func rawNulls(at jsontext.Pointer, raw json.RawMessage, visit visitor) error {
	root, faults := readTree(raw)
	if len(faults) > 0 {
		return fmt.Errorf("read the value at %q: %s", at+jsontext.Pointer(faults[0].Pointer), faults[0].Message)
	}
	for n := range root.all() {
		if n.kind != 'n' {
			continue
		}
		if err := visit(at+n.at, nil); err != nil {
			return err
		}
	}
	return nil
}
