package strata

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Null is a value, or null with the reason why there is none. Its zero value is a null that lacks its reason, which no
// document can be built with.
type Null[T any] struct {
	value  T
	known  bool
	reason string
}

// Some is a known value.
func Some[T any](v T) Null[T] { return Null[T]{value: v, known: true} }

// None is null, with the reason.
func None[T any](reason string) Null[T] { return Null[T]{reason: reason} }

// Get returns the value and whether there is one.
func (n Null[T]) Get() (T, bool) { return n.value, n.known }

// Reason says why there is no value; "" when there is one.
func (n Null[T]) Reason() string { return n.reason }

// MarshalJSON implements json.Marshaler.
func (n Null[T]) MarshalJSON() ([]byte, error) {
	if !n.known {
		return []byte("null"), nil
	}
	return marshal(n.value)
}

// UnmarshalJSON implements json.Unmarshaler. The reason of a null stands elsewhere in a document: Parse puts it back.
func (n *Null[T]) UnmarshalJSON(data []byte) error {
	*n = Null[T]{}
	if string(data) == "null" {
		return nil
	}
	n.known = true
	return json.Unmarshal(data, &n.value)
}

// nullable is what the walk over a document sees of a Null.
type nullable interface {
	isNull() bool
	why() string
	explain(reason string)
	held() any
}

func (n *Null[T]) isNull() bool          { return !n.known }
func (n *Null[T]) why() string           { return n.reason }
func (n *Null[T]) explain(reason string) { n.reason = reason }
func (n *Null[T]) held() any             { return &n.value }

// Ordered is a JSON object whose members keep their order.
type Ordered[V any] []Member[V]

// Member is one member of an Ordered object.
type Member[V any] struct {
	Key   string
	Value V
}

// Get returns the value of a member and whether there is one.
func (o Ordered[V]) Get(key string) (v V, ok bool) {
	for _, m := range o {
		if m.Key == key {
			return m.Value, true
		}
	}
	return v, false
}

// MarshalJSON implements json.Marshaler.
func (o Ordered[V]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := marshal(m.Key)
		if err != nil {
			return nil, err
		}
		value, err := marshal(m.Value)
		if err != nil {
			return nil, fmt.Errorf("write member %q: %w", m.Key, err)
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Ordered[V]) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("read object: expected an object, received %.20s", data)
	}
	*o = Ordered[V]{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		m := Member[V]{Key: key.(string)}
		if err := d.Decode(&m.Value); err != nil {
			return fmt.Errorf("read member %q: %w", m.Key, err)
		}
		*o = append(*o, m)
	}
	return nil
}

// members is what the walk over a document sees of an Ordered object.
type members interface {
	length() int
	member(i int) (key string, value any)
}

func (o *Ordered[V]) length() int { return len(*o) }
func (o *Ordered[V]) member(i int) (string, any) {
	return (*o)[i].Key, &(*o)[i].Value
}
