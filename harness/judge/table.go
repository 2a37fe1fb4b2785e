package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumbline/harness/transcript"
)

// The ids of findings that need more than one exchange by itself: the task, the plan, or other exchanges of the case.
const (
	PromptTruncated               = "prompt-truncated"
	PrefixCacheHit                = "prefix-cache-hit"
	RequestsSerialised            = "requests-serialised"
	FailureRate                   = "failure-rate"
	SeedNotReproducible           = "seed-not-reproducible"
	NondeterministicAtTemperature = "nondeterministic-at-temperature-0"
	CrossRequestContamination     = "cross-request-contamination"
	StateLeak                     = "state-leak"
	CacheHitCorruption            = "cache-hit-corruption"
	AuthStatusWrong               = "auth-status-wrong"
	AuthNotEnforced               = "auth-not-enforced"
	BadRequestAs500               = "bad-request-as-500"
)

// The checks of a judgement.
const (
	checkTransport   = "transport"
	checkFraming     = "framing"
	checkShape       = "shape"
	checkReasoning   = "reasoning_split"
	checkCalls       = "tool_calls"
	checkUsage       = "usage"
	checkTimings     = "timings"
	checkTask        = "task"
	checkIsolation   = "isolation"
	checkPerformance = "performance"
)

var checkNames = []string{checkTransport, checkFraming, checkShape, checkReasoning, checkCalls, checkUsage, checkTimings,
	checkTask, checkIsolation, checkPerformance}

// The states of a check.
const (
	stateOK      = "ok"
	stateWarn    = "warn"
	stateFail    = "fail"
	stateUnknown = "unknown" // cannot be judged
	stateNA      = "n/a"     // nothing there to be judged
)

// effect is what a finding does to a check. An empty state is fail for a fault and warn for anything less.
type effect struct{ check, state string }

// kind is what a finding means for a verdict.
type kind struct {
	// severity and sentence are for the findings made here; those of a transcript bring their own.
	severity transcript.Severity
	sentence string
	effects  []effect
	// noAnswer says that there is nothing to judge: as a fault the outcome is error, not fail.
	noAnswer bool
	// undecided says that, short of a fault, neither right nor wrong can be told: the outcome is inconclusive.
	undecided bool
}

func on(effects ...effect) kind             { return kind{effects: effects} }
func is(check string) effect                { return effect{check: check} }
func set(check, state string) effect        { return effect{check, state} }
func nothing(effects ...effect) kind        { return kind{effects: effects, noAnswer: true} }
func undecided(effects ...effect) kind      { return kind{effects: effects, undecided: true} }
func fault(says string, e ...effect) kind   { return kind{transcript.Fault, says, e, false, false} }
func reserve(says string, e ...effect) kind { return kind{transcript.Warning, says, e, false, false} }

// kinds says of every finding which check it belongs to and which outcome it leads to. The outcome follows from it by the one
// rule in outcome.
var kinds = map[string]kind{
	transcript.MissingDone:           on(is(checkFraming)),
	transcript.StreamTruncated:       nothing(is(checkTransport)),
	transcript.UnexpectedEOF:         on(is(checkTransport)),
	transcript.DataAfterDone:         on(is(checkFraming)),
	transcript.MalformedEvent:        on(is(checkFraming)),
	transcript.NonstandardErrorField: nothing(is(checkFraming)),
	transcript.StreamBuffered:        on(set(checkPerformance, stateUnknown)),
	transcript.StreamNotTerminated:   on(is(checkFraming)),
	transcript.InvalidJSONChunk:      on(is(checkFraming), is(checkShape)),
	transcript.NonFiniteNumber:       on(is(checkShape)),
	transcript.InvalidUTF8:           on(set(checkFraming, stateWarn), is(checkShape)),
	transcript.LoneSurrogate:         on(is(checkShape)),
	transcript.ReplacementCharacters: on(is(checkShape)),
	transcript.LogprobsBytesWrong:    on(is(checkShape)),

	transcript.ChoicesMissing:          on(is(checkShape)),
	transcript.ChoicesNull:             on(is(checkShape)),
	transcript.DeltaNull:               on(is(checkShape)),
	transcript.ContentNotString:        on(is(checkShape)),
	transcript.DuplicateFinishReason:   on(is(checkShape)),
	transcript.FinishReasonEmptyString: on(is(checkShape)),
	transcript.FinishReasonPremature:   on(is(checkShape)),
	transcript.FinishReasonError:       nothing(is(checkShape)),
	transcript.FinishReasonWrong:       fault("the reply should have ended with another finish reason", is(checkShape)),
	transcript.MissingFinishReason:     on(is(checkShape)),
	transcript.CumulativeDelta:         on(is(checkShape)),
	transcript.UnstableID:              on(is(checkShape)),
	transcript.ModelMismatch:           on(is(checkShape)),
	transcript.RoleRepeated:            on(is(checkShape)),
	transcript.StreamNotHonoured:       on(is(checkShape)),
	transcript.StreamFlagIgnored:       on(is(checkShape)),
	transcript.NonStreamBodyNotJSON:    nothing(is(checkTransport)),
	transcript.EmptyBody:               nothing(is(checkTransport)),
	transcript.NotEventStream:          nothing(is(checkTransport)),
	transcript.NotJSON:                 nothing(is(checkTransport)),

	transcript.ThinkTagsInContent:           on(is(checkReasoning)),
	transcript.ThinkCloseWithoutOpen:        on(is(checkReasoning)),
	transcript.AnswerInReasoning:            on(is(checkReasoning)),
	transcript.ReasoningAfterAnswer:         on(is(checkReasoning)),
	transcript.ReasoningDuplicatedAsContent: on(set(checkReasoning, stateWarn)),
	transcript.LengthBeforeAnswer:           undecided(),
	transcript.BudgetExhaustedInReasoning:   undecided(),
	transcript.ReasoningTokensZero:          on(is(checkUsage)),

	transcript.ToolIndexMissing:            on(is(checkCalls)),
	transcript.ToolIndexCollision:          on(is(checkCalls)),
	transcript.ToolIDMissing:               on(is(checkCalls)),
	transcript.ToolIDUnstable:              on(is(checkCalls)),
	transcript.ToolIDDuplicate:             on(is(checkCalls)),
	transcript.ToolNameMissing:             on(is(checkCalls)),
	transcript.ToolNameSplit:               on(is(checkCalls)),
	transcript.ToolNameRepeated:            on(is(checkCalls)),
	transcript.ToolNameUnknown:             on(is(checkCalls)),
	transcript.ToolArgumentsNotString:      on(is(checkCalls)),
	transcript.ToolArgumentsDoubleEncoded:  on(is(checkCalls)),
	transcript.ToolArgumentsInvalidJSON:    on(is(checkCalls)),
	transcript.ToolArgumentsMultipleValues: on(is(checkCalls)),
	transcript.ToolArgumentsEmpty:          on(is(checkCalls)),
	transcript.ToolCallTruncated:           undecided(is(checkCalls)),
	transcript.ToolCallDuplicated:          on(is(checkCalls)),
	transcript.ToolCallInContent:           on(is(checkCalls)),
	transcript.ToolCallInReasoning:         on(is(checkCalls)),
	transcript.ToolJSONLeakedInContent:     on(set(checkShape, stateWarn)),
	transcript.NoToolCall:                  fault("a tool call was the task and none came", is(checkCalls)),
	transcript.EmptyAnswerWithTokens:       on(is(checkShape)),

	transcript.UsageMissing:               on(set(checkUsage, stateFail)),
	transcript.UsageZero:                  on(set(checkUsage, stateFail)),
	transcript.UsageInEveryChunk:          on(is(checkUsage)),
	transcript.UsageInconsistent:          on(is(checkUsage)),
	transcript.UsageTotalMismatch:         on(is(checkUsage)),
	transcript.UsageTimingsMismatch:       on(is(checkUsage)), // the prompt's side belongs to the timings: see effectsOf
	transcript.PromptTokensZero:           on(set(checkUsage, stateFail)),
	transcript.CachedExceedsPrompt:        on(set(checkUsage, stateFail)),
	transcript.CompletionExceedsMax:       on(set(checkUsage, stateFail)),
	transcript.MaxTokensExceeded:          fault("more tokens came than were allowed"),
	transcript.TimingsZero:                on(set(checkTimings, stateFail)),
	transcript.TimingsNegative:            on(set(checkTimings, stateFail)),
	transcript.TimingsImplausible:         on(set(checkTimings, stateFail)),
	transcript.TimingsIncomplete:          on(set(checkTimings, stateFail)),
	transcript.TimingsDoNotCoverWallClock: on(set(checkTimings, stateFail)),
	transcript.QueueWait:                  on(set(checkPerformance, stateUnknown)),
	transcript.InterTokenStall:            on(is(checkPerformance)),

	transcript.SpecialTokenLeak: on(is(checkShape)),
	transcript.ChannelResidue:   on(is(checkShape)),
	transcript.TemplateError:    nothing(),
	transcript.StopIgnored:      on(is(checkShape)),
	transcript.StopPrefixLeaked: on(is(checkShape)),
	transcript.PromptEcho:       fault("the answer begins with the prompt", is(checkShape)),

	transcript.JSONFenced:        on(),
	transcript.JSONTrailingText:  on(),
	transcript.JSONTruncated:     undecided(),
	transcript.WhitespaceRunaway: on(),
	transcript.SchemaIgnored:     on(),

	transcript.ModelsShape:         on(is(checkShape)),
	transcript.ModelsFieldsMissing: on(is(checkShape)),
	transcript.ModelsUnavailable:   nothing(is(checkTransport)),

	transcript.HTTP4xx:       nothing(is(checkTransport)),
	transcript.HTTP5xx:       nothing(is(checkTransport)),
	transcript.Overloaded:    nothing(is(checkTransport)),
	transcript.RateLimited:   nothing(is(checkTransport)),
	transcript.AuthRejected:  nothing(is(checkTransport)),
	transcript.ModelNotFound: nothing(is(checkTransport)),
	transcript.Status200ForClientError: fault("a request that should be refused got a status of success",
		is(checkShape)),
	transcript.InBandError:       nothing(is(checkShape)),
	transcript.ConnectionReset:   nothing(is(checkTransport)),
	transcript.TimeoutFirstByte:  nothing(is(checkTransport)),
	transcript.TimeoutFirstToken: nothing(is(checkTransport)),
	transcript.Stalled:           nothing(is(checkTransport)),

	AuthStatusWrong: fault("a wrong key was refused with a status that does not say so"),
	AuthNotEnforced: fault("a wrong key was accepted"),
	BadRequestAs500: fault("a request that is the client's fault was answered as a fault of the server"),
	PromptTruncated: fault("the server counts far fewer prompt tokens than were sent: it dropped a part and did not say so",
		set(checkUsage, stateFail)),
	PrefixCacheHit: reserve("most of the prompt came from a cache: the sample is warm, and its prompt rate says nothing of reading a prompt",
		is(checkPerformance)),
	RequestsSerialised: reserve("requests that were sent together were served one after the other", is(checkPerformance)),
	FailureRate: reserve("not every request of the level was served: its figures are of the served ones alone",
		set(checkPerformance, stateUnknown)),
	SeedNotReproducible:           reserve("one seed gave two different answers"),
	NondeterministicAtTemperature: reserve("one request at temperature 0 gave two different answers"),
	CrossRequestContamination:     fault("the answer holds what belongs to another request", is(checkIsolation)),
	StateLeak:                     fault("the answer holds what belongs to an earlier request", is(checkIsolation)),
	CacheHitCorruption:            fault("the answer was right while nothing was cached, and is wrong from the cache", is(checkIsolation)),
}

// rank orders the states of a check: the worst finding of a check decides.
var rank = map[string]int{stateNA: 0, stateOK: 1, stateUnknown: 2, stateWarn: 3, stateFail: 4}

// effectsOf is what a finding does to the checks.
func effectsOf(f transcript.Finding) []effect {
	effects := kinds[f.ID].effects
	if f.ID == transcript.UsageTimingsMismatch && f.Path == "timings.prompt_n" {
		effects = []effect{set(checkTimings, stateFail)}
	}
	out := make([]effect, 0, len(effects))
	for _, e := range effects {
		if e.state == "" {
			e.state = stateWarn
			if f.Severity == transcript.Fault {
				e.state = stateFail
			}
		}
		out = append(out, e)
	}
	return out
}

// Catalogue is a Markdown table of every finding: its id, how much it weighs as a rule, the checks it touches, and what it
// says.
func Catalogue() string {
	var b strings.Builder
	b.WriteString("| finding | severity | checks | what it says |\n| --- | --- | --- | --- |\n")
	for _, id := range slices.Sorted(maps.Keys(kinds)) {
		severity, sentence := kinds[id].severity, kinds[id].sentence
		if sentence == "" {
			severity, sentence = transcript.Describe(id)
		}
		var checks []string
		for _, e := range kinds[id].effects {
			checks = append(checks, e.check)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", id, severity, strings.Join(checks, ", "), strings.ReplaceAll(sentence, "|", `\|`))
	}
	return b.String()
}
