package transcript

import "fmt"

// models reads a model list: an object with a list named data, whose elements have at least an id.
func (r *reader) models() {
	if !r.ok() {
		r.add(ModelsUnavailable, -1, "", fmt.Sprintf("HTTP %d", r.e.Response.Status))
		return
	}
	if !r.e.Whole() || r.t.Error != nil {
		return
	}
	doc, l := legal(r.bodyText)
	if !l.ok || len(doc) == 0 {
		r.add(ModelsUnavailable, -1, "", "the body is no JSON")
		return
	}
	data := member(doc, "data")
	if !isObject(doc) || !isList(data) {
		data = r.otherList(doc)
		if data == nil {
			return
		}
	}
	object, _ := text(member(doc, "object"))
	if isObject(doc) && object != "list" {
		r.add(ModelsFieldsMissing, -1, "object", "")
	}
	r.t.ModelIDs = []string{}
	eachElement(data, func(n int, entry []byte) { r.entry(n, entry) })
}

// modelsKept bounds the entries that are read of a list.
const modelsKept = 10_000

// entry reads one model. Only its id is needed to ask for it.
func (r *reader) entry(n int, entry []byte) {
	if n >= modelsKept {
		return
	}
	if isString(entry) { // a list of bare names
		id, _ := text(entry)
		r.t.ModelIDs = append(r.t.ModelIDs, id)
		r.addAs(Warning, ModelsShape, -1, "data[]", "an entry is no object")
		return
	}
	id, _ := text(member(entry, "id"))
	if id == "" {
		id, _ = text(member(entry, "name"))
		r.add(ModelsShape, -1, "data[].id", "")
	}
	if id != "" {
		r.t.ModelIDs = append(r.t.ModelIDs, id)
	}
	for _, name := range []string{"object", "created", "owned_by"} {
		if isNull(member(entry, name)) {
			r.add(ModelsFieldsMissing, -1, "data[]."+name, "")
		}
	}
}

// otherList finds the list where it should not stand: as the document itself, or under another name.
func (r *reader) otherList(doc []byte) []byte {
	if isList(doc) {
		r.addAs(Warning, ModelsShape, -1, "", "the list stands bare")
		return doc
	}
	if list := member(doc, "models"); isList(list) {
		r.addAs(Warning, ModelsShape, -1, "data", "the list is named models")
		return list
	}
	r.add(ModelsShape, -1, "data", "")
	return nil
}
