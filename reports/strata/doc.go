// Package strata holds the standard protocol's result document (format "strata-standard-benchmark", version 1): its
// types, the builder that makes one from a run's record alone, and the validator that says everything that is wrong
// with one. Building is a pure function of the record: it asks no engine, reads no clock and looks at no other file.
// The package judges documents, never engines.
//
// Every null of a document has its reason: a field that may be null is a Null, which cannot be made without one, and
// the list of reasons is collected from the finished document in a single walk.
package strata
