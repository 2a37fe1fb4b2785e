package transcript

import (
	"fmt"
	"maps"
	"slices"
)

// The ids of findings that one exchange can show, by area.
const (
	// framing
	MissingDone           = "missing-done"
	StreamTruncated       = "stream-truncated"
	UnexpectedEOF         = "unexpected-eof"
	DataAfterDone         = "data-after-done"
	MalformedEvent        = "malformed-event"
	NonstandardErrorField = "nonstandard-error-field"
	StreamBuffered        = "stream-buffered"
	StreamNotTerminated   = "stream-not-terminated"
	InvalidJSONChunk      = "invalid-json-chunk"
	NonFiniteNumber       = "non-finite-number"
	InvalidUTF8           = "invalid-utf8"
	LoneSurrogate         = "lone-surrogate"
	ReplacementCharacters = "replacement-characters"
	LogprobsBytesWrong    = "logprobs-bytes-wrong"
	// shape
	ChoicesMissing          = "choices-missing"
	ChoicesNull             = "choices-null"
	DeltaNull               = "delta-null"
	ContentNotString        = "content-not-string"
	DuplicateFinishReason   = "duplicate-finish-reason"
	FinishReasonEmptyString = "finish-reason-empty-string"
	FinishReasonPremature   = "finish-reason-premature"
	FinishReasonError       = "finish-reason-error"
	FinishReasonWrong       = "finish-reason-wrong"
	MissingFinishReason     = "missing-finish-reason"
	CumulativeDelta         = "cumulative-delta"
	UnstableID              = "unstable-id"
	ModelMismatch           = "model-mismatch"
	RoleRepeated            = "role-repeated"
	StreamNotHonoured       = "stream-not-honoured"
	StreamFlagIgnored       = "stream-flag-ignored"
	NonStreamBodyNotJSON    = "non-stream-body-not-json"
	EmptyBody               = "empty-body"
	NotEventStream          = "not-event-stream"
	NotJSON                 = "not-json"
	// reasoning
	ThinkTagsInContent           = "think-tags-in-content"
	ThinkCloseWithoutOpen        = "think-close-without-open"
	AnswerInReasoning            = "answer-in-reasoning"
	ReasoningAfterAnswer         = "reasoning-after-answer"
	ReasoningDuplicatedAsContent = "reasoning-duplicated-as-content"
	LengthBeforeAnswer           = "length-before-answer"
	BudgetExhaustedInReasoning   = "budget-exhausted-in-reasoning"
	ReasoningTokensZero          = "reasoning-tokens-zero"
	// tool calls
	ToolIndexMissing            = "tool-index-missing"
	ToolIndexCollision          = "tool-index-collision"
	ToolIDMissing               = "tool-id-missing"
	ToolIDUnstable              = "tool-id-unstable"
	ToolIDDuplicate             = "tool-id-duplicate"
	ToolNameMissing             = "tool-name-missing"
	ToolNameSplit               = "tool-name-split"
	ToolNameRepeated            = "tool-name-repeated"
	ToolNameUnknown             = "tool-name-unknown"
	ToolArgumentsNotString      = "tool-arguments-not-string"
	ToolArgumentsDoubleEncoded  = "tool-arguments-double-encoded"
	ToolArgumentsInvalidJSON    = "tool-arguments-invalid-json"
	ToolArgumentsMultipleValues = "tool-arguments-multiple-values"
	ToolArgumentsEmpty          = "tool-arguments-empty"
	ToolCallTruncated           = "tool-call-truncated"
	ToolCallDuplicated          = "tool-call-duplicated"
	ToolCallInContent           = "tool-call-in-content"
	ToolCallInReasoning         = "tool-call-in-reasoning"
	ToolJSONLeakedInContent     = "tool-json-leaked-in-content"
	NoToolCall                  = "no-tool-call"
	EmptyAnswerWithTokens       = "empty-answer-with-tokens"
	// accounting and time
	UsageMissing               = "usage-missing"
	UsageZero                  = "usage-zero"
	UsageInEveryChunk          = "usage-in-every-chunk"
	UsageInconsistent          = "usage-inconsistent"
	UsageTotalMismatch         = "usage-total-mismatch"
	UsageTimingsMismatch       = "usage-timings-mismatch"
	PromptTokensZero           = "prompt-tokens-zero"
	CachedExceedsPrompt        = "cached-exceeds-prompt"
	CompletionExceedsMax       = "completion-exceeds-max"
	MaxTokensExceeded          = "max-tokens-exceeded"
	TimingsZero                = "timings-zero"
	TimingsNegative            = "timings-negative"
	TimingsImplausible         = "timings-implausible"
	TimingsIncomplete          = "timings-incomplete"
	TimingsDoNotCoverWallClock = "timings-do-not-cover-wall-clock"
	QueueWait                  = "queue-wait"
	InterTokenStall            = "inter-token-stall"
	// templates
	SpecialTokenLeak = "special-token-leak"
	ChannelResidue   = "channel-residue"
	TemplateError    = "template-error"
	// parameters and prompt
	StopIgnored      = "stop-ignored"
	StopPrefixLeaked = "stop-prefix-leaked"
	PromptEcho       = "prompt-echo"
	// structured output
	JSONFenced        = "json-fenced"
	JSONTrailingText  = "json-trailing-text"
	JSONTruncated     = "json-truncated"
	WhitespaceRunaway = "whitespace-runaway"
	SchemaIgnored     = "schema-ignored"
	// model list
	ModelsShape         = "models-shape"
	ModelsFieldsMissing = "models-fields-missing"
	ModelsUnavailable   = "models-unavailable"
	// transport
	HTTP4xx                 = "http-4xx"
	HTTP5xx                 = "http-5xx"
	Overloaded              = "overloaded"
	RateLimited             = "rate-limited"
	AuthRejected            = "auth-rejected"
	ModelNotFound           = "model-not-found"
	Status200ForClientError = "status-200-for-client-error"
	InBandError             = "in-band-error"
	ConnectionReset         = "connection-reset"
	TimeoutFirstByte        = "timeout-first-byte"
	TimeoutFirstToken       = "timeout-first-token"
	Stalled                 = "stalled"
)

type findingKind struct {
	severity Severity
	sentence string
}

// findingKinds gives each id its weight and what it says. A single finding may weigh less where the reply could be read
// all the same; what was seen is appended to the sentence.
var findingKinds = map[string]findingKind{
	MissingDone:           {Warning, "the stream ended properly but never sent [DONE]"},
	StreamTruncated:       {Fault, "the body ended before the reply did"},
	UnexpectedEOF:         {Warning, "the reply was complete, but the HTTP body was cut off before its end"},
	DataAfterDone:         {Warning, "more events followed [DONE]; they were not read"},
	MalformedEvent:        {Fault, "an event's data cannot be read"},
	NonstandardErrorField: {Fault, "an error was sent in a field that event-stream readers ignore"},
	StreamBuffered:        {Warning, "the whole stream arrived at one moment, long after the request: something on the way held it back"},
	StreamNotTerminated:   {Fault, "the reply was complete, but the server left the stream open"},
	InvalidJSONChunk:      {Fault, "an event's data is not legal JSON"},
	NonFiniteNumber:       {Fault, "a number is NaN or infinite, which JSON cannot hold"},
	InvalidUTF8:           {Fault, "the text holds bytes that are no UTF-8"},
	LoneSurrogate:         {Fault, "a string holds one half of a surrogate pair"},
	ReplacementCharacters: {Fault, "the server itself sent U+FFFD in place of a character"},
	LogprobsBytesWrong:    {Fault, "the bytes given for a token do not spell it"},

	ChoicesMissing:          {Warning, "a chunk has no choices member"},
	ChoicesNull:             {Warning, "choices is not a list"},
	DeltaNull:               {Warning, "a choice has no delta object"},
	ContentNotString:        {Fault, "a text field is not a string"},
	DuplicateFinishReason:   {Warning, "finish_reason was sent more than once"},
	FinishReasonEmptyString: {Warning, "finish_reason is an empty string where null is meant"},
	FinishReasonPremature:   {Fault, "output went on after a finish_reason"},
	FinishReasonError:       {Fault, "finish_reason says that generation failed"},
	FinishReasonWrong:       {Fault, "finish_reason does not fit the reply"},
	MissingFinishReason:     {Fault, "no finish_reason was sent"},
	CumulativeDelta:         {Fault, "deltas repeat the text that was already sent"},
	UnstableID:              {Warning, "the chunks of one reply have different ids"},
	ModelMismatch:           {Warning, "the reply does not name the model that was asked for"},
	RoleRepeated:            {Info, "the role is sent again inside the answer"},
	StreamNotHonoured:       {Fault, "a stream was asked for and one JSON document came"},
	StreamFlagIgnored:       {Fault, "no stream was asked for and an event stream came"},
	NonStreamBodyNotJSON:    {Fault, "the body is not JSON although no stream was asked for"},
	EmptyBody:               {Fault, "the body is empty"},
	NotEventStream:          {Fault, "a stream was asked for and the body is none"},
	NotJSON:                 {Fault, "the body is called JSON and is none"},

	ThinkTagsInContent:           {Warning, "the thinking stands between tags inside the answer; it was taken out"},
	ThinkCloseWithoutOpen:        {Warning, "the answer holds a closing thinking tag that was never opened; what stands before it was taken out"},
	AnswerInReasoning:            {Fault, "the reply stopped with an empty answer; all text is in the thinking"},
	ReasoningAfterAnswer:         {Warning, "thinking arrived after the answer had begun"},
	ReasoningDuplicatedAsContent: {Fault, "the answer is the thinking once more"},
	LengthBeforeAnswer:           {Info, "the token limit was reached before anything could be seen"},
	BudgetExhaustedInReasoning:   {Info, "the token limit was reached while the model was thinking"},
	ReasoningTokensZero:          {Warning, "reasoning_tokens is 0 although there is thinking"},

	ToolIndexMissing:            {Fault, "a tool call's piece has no index"},
	ToolIndexCollision:          {Fault, "two tool calls share one index"},
	ToolIDMissing:               {Fault, "a tool call has no id"},
	ToolIDUnstable:              {Warning, "a tool call's id changed on the way; the first was kept"},
	ToolIDDuplicate:             {Fault, "two tool calls share one id"},
	ToolNameMissing:             {Fault, "a tool call has no function name"},
	ToolNameSplit:               {Warning, "a function name came in pieces"},
	ToolNameRepeated:            {Warning, "a function name was sent more than once for one call"},
	ToolNameUnknown:             {Warning, "a tool call names a function that was not offered"},
	ToolArgumentsNotString:      {Fault, "tool arguments are not a string of JSON"},
	ToolArgumentsDoubleEncoded:  {Fault, "tool arguments are a JSON string that holds the object once more as text"},
	ToolArgumentsInvalidJSON:    {Fault, "tool arguments are not one JSON object"},
	ToolArgumentsMultipleValues: {Fault, "tool arguments hold several JSON values"},
	ToolArgumentsEmpty:          {Fault, "tool arguments are empty although the function requires some"},
	ToolCallTruncated:           {Warning, "a tool call was cut short"},
	ToolCallDuplicated:          {Warning, "the same tool call was sent twice"},
	ToolCallInContent:           {Fault, "a tool call was written as answer text"},
	ToolCallInReasoning:         {Fault, "a tool call was written into the thinking and none was sent"},
	ToolJSONLeakedInContent:     {Fault, "the answer text repeats the tool call as JSON"},
	NoToolCall:                  {Fault, "a tool call was demanded and none came"},
	EmptyAnswerWithTokens:       {Fault, "the reply stopped with nothing to see although tokens were counted"},

	UsageMissing:               {Warning, "no usage was sent"},
	UsageZero:                  {Warning, "usage counts no tokens although there is output"},
	UsageInEveryChunk:          {Warning, "usage is sent over and over; the last one counts"},
	UsageInconsistent:          {Fault, "usage contradicts itself"},
	UsageTotalMismatch:         {Warning, "total_tokens is not the sum of prompt and completion"},
	UsageTimingsMismatch:       {Warning, "usage and the engine's timings count differently"},
	PromptTokensZero:           {Warning, "prompt_tokens is 0 although there was a prompt"},
	CachedExceedsPrompt:        {Warning, "more cached tokens than prompt tokens"},
	CompletionExceedsMax:       {Warning, "more completion tokens are counted than were allowed"},
	MaxTokensExceeded:          {Fault, "more tokens came than were allowed"},
	TimingsZero:                {Warning, "the engine gives no time for tokens that it counts"},
	TimingsNegative:            {Warning, "the engine gives a negative time"},
	TimingsImplausible:         {Warning, "the engine's time does not fit the client's clock"},
	TimingsIncomplete:          {Warning, "the engine's timings lack a count or a time"},
	TimingsDoNotCoverWallClock: {Warning, "the engine's prompt time is far too short for the prompt and leaves most of the wait unexplained: it covers a part of the work, or the request also waited in a queue"},
	QueueWait:                  {Warning, "the first token came much later than the engine's prompt time explains: the request waited in a queue or on the way"},
	InterTokenStall:            {Warning, "output paused far longer than its usual pace"},

	SpecialTokenLeak: {Fault, "a control token of the template is in the answer"},
	ChannelResidue:   {Fault, "words of a control sequence are left in the answer"},
	TemplateError:    {Fault, "the server could not apply the model's chat template"},

	StopIgnored:      {Fault, "the answer holds a stop string"},
	StopPrefixLeaked: {Fault, "the answer ends with the beginning of a stop string"},
	PromptEcho:       {Fault, "the answer begins with the prompt"},

	JSONFenced:        {Fault, "the JSON that was demanded stands in a Markdown fence"},
	JSONTrailingText:  {Fault, "there is text around the JSON that was demanded"},
	JSONTruncated:     {Fault, "the JSON that was demanded ends too early"},
	WhitespaceRunaway: {Fault, "the answer runs away into white space"},
	SchemaIgnored:     {Fault, "the answer is not the JSON that was demanded"},

	ModelsShape:         {Fault, "the model list is no object with a data list"},
	ModelsFieldsMissing: {Warning, "the model list lacks fields that the interface has"},
	ModelsUnavailable:   {Fault, "the server has no model list to show"},

	HTTP4xx:                 {Fault, "the server refused the request"},
	HTTP5xx:                 {Fault, "the server failed"},
	Overloaded:              {Fault, "the server is too busy or not ready"},
	RateLimited:             {Fault, "the server limits the rate of requests"},
	AuthRejected:            {Fault, "the server did not accept the credential"},
	ModelNotFound:           {Fault, "the server does not know the model"},
	Status200ForClientError: {Fault, "a refusal came with a status of success"},
	InBandError:             {Fault, "the reply holds an error object"},
	ConnectionReset:         {Fault, "the connection was reset inside the reply"},
	TimeoutFirstByte:        {Fault, "no byte of the body came in time"},
	TimeoutFirstToken:       {Fault, "no output came in time"},
	Stalled:                 {Fault, "the reply stopped coming before it was complete"},
}

// FindingIDs lists the id of every finding that a transcript can have, sorted.
func FindingIDs() []string { return slices.Sorted(maps.Keys(findingKinds)) }

// Describe is how much a finding weighs as a rule, and what it says; "" for one that this package never makes.
func Describe(id string) (Severity, string) {
	kind := findingKinds[id]
	return kind.severity, kind.sentence
}

// findings collects deviations. One that repeats at the same path is kept once, with how often it was seen, so that a
// long stream with a fault in every chunk stays readable.
type findings struct {
	list []Finding
	seen map[string]int // id and path to the index in list
	more map[int]int    // index in list to further sightings
}

// add records a finding with the weight of its kind. Detail, when not "", says what was seen.
func (f *findings) add(id string, event int, path, detail string) {
	f.addAs(findingKinds[id].severity, id, event, path, detail)
}

func (f *findings) addAs(severity Severity, id string, event int, path, detail string) {
	key := id + "\x00" + path
	if i, ok := f.seen[key]; ok {
		if f.more == nil {
			f.more = map[int]int{}
		}
		f.more[i]++
		if weight[severity] > weight[f.list[i].Severity] { // the heaviest of its kind speaks for all
			f.list[i].Severity, f.list[i].Event, f.list[i].Sentence = severity, event, sentence(id, detail)
		}
		return
	}
	if len(f.list) == findingsLimit {
		return
	}
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	f.seen[key] = len(f.list)
	f.list = append(f.list, Finding{ID: id, Severity: severity, Event: event, Path: path, Sentence: sentence(id, detail)})
}

// weight orders the severities.
var weight = map[Severity]int{Info: 0, Warning: 1, Fault: 2}

func sentence(id, detail string) string {
	if detail == "" {
		return findingKinds[id].sentence
	}
	return findingKinds[id].sentence + ": " + detail
}

// findingsLimit bounds how many findings one exchange can have, against a reply made to have millions.
const findingsLimit = 500

func (f *findings) has(id string) bool {
	for _, x := range f.list {
		if x.ID == id {
			return true
		}
	}
	return false
}

// all returns the findings in the order in which they were seen.
func (f *findings) all() []Finding {
	for i, n := range f.more {
		f.list[i].Sentence += fmt.Sprintf(" (seen %d times)", n+1)
	}
	return f.list
}
