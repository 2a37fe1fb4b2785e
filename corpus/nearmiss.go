package corpus

import (
	_ "embed"
	"fmt"

	"github.com/go-json-experiment/json"
)

// The near-misses are data for the tests of whatever judges answers. They are no part of a pack: nothing of a run
// depends on them.
//
//go:embed nearmisses.json
var nearMisses []byte

// NearMiss is a reply that is right in another form than the pack's answer, or nearly right, and how it must be judged.
type NearMiss struct {
	// ID is the prompt's, such as "sanity-I1".
	ID string `json:"id"`
	// Right says whether the reply passes.
	Right bool `json:"right"`
	// Why names what is unusual about it, in a few words.
	Why   string `json:"why"`
	Reply Reply  `json:"reply"`
}

// Reply is what a model said, put together from a stream.
type Reply struct {
	Reasoning string      `json:"reasoning,omitzero"`
	Text      string      `json:"text,omitzero"`
	Calls     []ReplyCall `json:"calls,omitzero"`
}

// ReplyCall is a tool call as it came: the arguments are a text that ought to be JSON.
type ReplyCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// NearMisses returns the near-misses of the embedded pack's sanity cases, case by case.
func NearMisses() ([]NearMiss, error) {
	var all []NearMiss
	if err := json.Unmarshal(nearMisses, &all, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read nearmisses.json: %w", err)
	}
	return all, nil
}
