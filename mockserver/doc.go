// Package mockserver is the offline engine: a real HTTP listener that speaks the chat-completions interface as
// llama.cpp and Strata do, with reasoning, answers, tool calls, usage, timings, slots and a queue. It answers every
// case of the corpus rightly from the answer key and any other prompt with seeded text, as fast as the machine allows
// or at the pace of a named machine. It serves to try the suite without an engine; nothing that it measures is a
// result about an engine.
//
// It writes the wire by code of its own: were the client's reader used here, both could be wrong alike and every test
// green. It never judges, never measures a client, and keeps nothing on disk.
//
// # How a request goes through
//
//	body ─► readChat: validated job, speech decided ─► slot (FIFO) ─► generate: tokens ─► frames: timed events ─► delivery
//
// A job's whole reply is known before its first byte: frames returns it as a list of events, each with its due time.
// Whoever wants another reply on the wire changes that list; delivery only waits and writes. A token waits as its text and
// its moment, and becomes an event by the reply's form when it is due: a thousand streams at once fit into one process
// and less than a core.
//
// # Defects
//
// An engine that is always right can show only that a right reply passes. Options.Defects asks for faults by name, in a
// share of the streams: each changes what is said, or the list of events, and nothing else. A stream without one is the
// same as that of an engine without any.
//
// # Replay
//
// A Replayer is the other engine of this package: it answers with recorded or scripted bytes and speaks no protocol of
// its own. It shares nothing with the engine above but the bounds of a request.
//
// # Tokens
//
// There is no tokenizer. Text is cut into pseudo-tokens (see pieces); prompts of the corpus are counted by the pack's
// own counts instead. A word that a prompt asks to be repeated is one token each time. A stream carries one pseudo-token a
// chunk and their join is the text. completion_tokens and predicted_n count what was generated: no end-of-turn token is
// added, the head of a tool call (its name) is one token, and the tokens of a stop string count although they are never
// shown.
//
// # Clock
//
// timings follow llama.cpp's names with Strata's convention: predicted_ms runs from the end of prefill, when the first
// token is out, to the end of the reply one token's time after the last, and the rate divides by all predicted_n tokens.
// The prompt cache is off: cache_n is 0 and every prompt is read whole. Time in the queue is in neither figure.
package mockserver
