// Package capacity holds the capacity protocol's result document (schema "anvil-serving.benchmark/v1"): the writer that
// makes one from a run's record alone, the reader, and the validator that says everything that is wrong with one. Writing
// is a pure function of the record: it asks no engine, reads no clock and looks at no other file. It holds a few numbers
// for each request and never the requests themselves. The package judges documents, never engines.
//
// What the format has no place for stands under extensions.plumbline. There a null has its reason beside it, as the
// member of the same name with "_reason" behind.
package capacity
