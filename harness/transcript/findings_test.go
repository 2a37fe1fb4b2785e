package transcript

import (
	"slices"
	"strings"
	"testing"
	"time"

	"plumbline/fixtures"

	. "github.com/onsi/gomega"
)

const (
	okTimings = `{"cache_n":0,"prompt_n":10,"prompt_ms":90,"prompt_per_second":111.1,"predicted_n":4,"predicted_ms":120,"predicted_per_second":33.3}`
	twoCalls  = `{"index":1,"id":"k2","type":"function","function":{"name":"look_up","arguments":"{\"port\":\"Brack\"}"}}`
	wholeCall = `{"index":0,"id":"k1","type":"function","function":{"name":"look_up","arguments":"{\"port\":\"Aldwick\"}"}}`
)

func timings(edit ...string) []string {
	b := words()
	b[len(b)-2] = timed(strings.NewReplacer(edit...).Replace(okTimings))
	return b
}

func spaced(n int, d string) []string { return slices.Repeat([]string{d}, n) }

// kinds holds for each finding a reply that shows it and a near miss that does not.
var kinds = map[string]struct{ shows, nearMiss *fixtures.Exchange }{
	MissingDone:     {answer(words()[:7]), answer(append(words()[:7], "data: [DONE]"))},
	StreamTruncated: {answer(words()[:3]), answer(words()[:6])},
	UnexpectedEOF:   {answer(words(), ended(fixtures.EndTruncate)), answer(words()[:3], ended(fixtures.EndTruncate))},
	DataAfterDone:   {answer(append(words(), usage(1, 1))), answer(append(words(), ": bye\n\n"))},
	MalformedEvent:  {answer(told("stop", "data: {\"choices\":\ndata: oh\n\n")), answer(told("stop", "data: {\"choices\":\ndata: []}\n\n"))},
	NonstandardErrorField: {answer(pieces("error: {\"message\":\"no\"}\n\n", done)),
		answer(append(words(), "error: late\n\n"))},
	StreamBuffered: {answer(pieces(strings.Join(append(words()[:1:1], append(spaced(3, say("a")), words()[1:]...)...), "")), later(0, time.Second)),
		answer(pieces(strings.Join(words(), "")), later(0, -99*time.Millisecond))},
	StreamNotTerminated:   {answer(words()[:7], ended(fixtures.EndIdle)), answer(words()[:4], ended(fixtures.EndIdle))},
	InvalidJSONChunk:      {answer(told("stop", "data: {\"choices\":[\n\n")), answer(told("stop", "data: {\"choices\":[ ] }  \n\n"))},
	NonFiniteNumber:       {answer(told("stop", "data: {\"choices\":[],\"x\":-Infinity}\n\n")), answer(told("stop", say("-Infinity NaN")))},
	InvalidUTF8:           {answer(told("stop", say("a"), "data: {\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\n")), answer(told("stop", say("🦁")))},
	LoneSurrogate:         {answer(told("stop", delta(`{"content":"\ud83d"}`))), answer(told("stop", delta(`{"content":"\ud83d\udc4b"}`)))},
	ReplacementCharacters: {answer(told("stop", say("\uFFFD"))), answer(told("stop", say("\uFFFD")), with("hi", "\uFFFD"))},
	LogprobsBytesWrong: {answer(told("stop", chunk(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","bytes":[98]}]}}`))),
		answer(told("stop", chunk(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","bytes":[97]},{"token":"\ufffd","bytes":[240]},{"token":"x","bytes":null}]}}`)))},

	ChoicesMissing:          {answer(told("stop", say("a"), "data: {\"id\":\"c1\"}\n\n")), answer(told("stop", say("a"), chunk("")))},
	ChoicesNull:             {answer(told("stop", say("a"), "data: {\"choices\":null}\n\n")), answer(told("stop", say("a"), "data: {\"choices\":[]}\n\n"))},
	DeltaNull:               {answer(told("stop", delta("null"), say("a"))), answer(told("stop", delta("{}"), say("a")))},
	ContentNotString:        {answer(told("stop", delta(`{"content":[{"type":"text","text":"a"}]}`))), answer(told("stop", delta(`{"content":null,"reasoning":null}`), say("[]")))},
	DuplicateFinishReason:   {answer(told("stop", say("a"), finish("stop"))), answer(told("stop", say("a"), chunk(`{"index":1,"delta":{},"finish_reason":"stop"}`)))},
	FinishReasonEmptyString: {answer(told("stop", chunk(`{"index":0,"delta":{"content":"a"},"finish_reason":""}`))), answer(words())},
	FinishReasonPremature:   {answer(told("stop", say("a"), finish("stop"), say("b"))), answer(told("stop", say("a"), finish("stop"), delta(`{"content":""}`)))},
	FinishReasonError:       {answer(told("error", say("a"))), answer(told("content_filter", say("a")))},
	FinishReasonWrong: {answer(told("stop", calls(wholeCall)), request(offering)),
		answer(told("stop", calls(wholeCall)), request(offering), with(`"tools"`, `"tool_choice":{"type":"function","function":{"name":"look_up"}},"tools"`))},
	MissingFinishReason: {answer(pieces(role, say("a"), usage(10, 4), done)), answer(pieces(role, say("a"), "data: {\"error\":{\"message\":\"x\"}}\n\n", done))},
	CumulativeDelta: {answer(told("stop", say("The"), say("The lamp"), say("The lamp"), say("The lamp is"), say("The lamp is lit now."))),
		answer(told("stop", say("ha"), say("ha"), say("ha"), say("hahaha")))},
	UnstableID:           {answer(told("stop", say("a"), strings.Replace(say("b"), "c1", "c2", 1))), answer(told("stop", say("a"), strings.Replace(say("b"), "c1", "", 1)))},
	ModelMismatch:        {answer(words(), with(`"model":"m"`, `"model":"other"`)), answer(words(), with(`"model":"m"`, `"model":"models/M.gguf"`))},
	RoleRepeated:         {answer(told("stop", say("a"), delta(`{"role":"assistant","content":"b"}`))), answer(told("stop", role, say("a")))},
	StreamNotHonoured:    {answer(document(`{"content":"a"}`, `"stop"`), kind("application/json")), answer(document(`{"content":"a"}`, `"stop"`), plain)},
	StreamFlagIgnored:    {answer(words(), plain), answer(words())},
	NonStreamBodyNotJSON: {answer(pieces("<html>"), plain), answer(pieces("<html>"))},
	EmptyBody:            {answer(nil), answer(nil, ended(fixtures.EndFirstByte))},
	NotEventStream:       {answer(pieces("<html>no"), kind("text/html")), answer(words(), kind("text/event-stream; charset=utf-8"))},
	NotJSON:              {answer(pieces("{oops"), kind("application/json")), answer(pieces(`{"ok":1}`), kind("application/json"))},

	ThinkTagsInContent:    {answer(told("stop", say("<thi"), say("nk>so"), say("</think>\n\nyes"))), answer(told("stop", say("Write <think> here.")))},
	ThinkCloseWithoutOpen: {answer(told("stop", say("so"), say("</think>"), say("yes"))), answer(told("stop", say("Use `</think>` or </think> to close.")))},
	AnswerInReasoning:     {answer(told("stop", think("yes"))), answer(told("stop", think("so"), say("yes")))},
	ReasoningAfterAnswer:  {answer(told("stop", say("a"), think("b"))), answer(told("stop", say("\n"), think("b"), say("a")))},
	ReasoningDuplicatedAsContent: {answer(told("stop", think("We need"), think(" the"), think(" colour."), say("We need the colour."))),
		answer(told("stop", think("We need"), think(" the"), think(" colour."), say("We need"), say(" the colour.")))},
	LengthBeforeAnswer:         {answer(told("length")), answer(told("length", say("a")))},
	BudgetExhaustedInReasoning: {answer(told("length", think("so"))), answer(told("length", think("so"), say("a")))},
	ReasoningTokensZero: {answer(pieces(role, think("so"), say("a"), finish("stop"), usage(10, 4, `,"completion_tokens_details":{"reasoning_tokens":0}`), done)),
		answer(pieces(role, say("a"), finish("stop"), usage(10, 4, `,"completion_tokens_details":{"reasoning_tokens":0}`), done))},

	ToolIndexMissing: {answer(called(calls(strings.Replace(wholeCall, `"index":0,`, "", 1))), request(offering)), answer(document(`{"content":null,"tool_calls":[`+strings.Replace(wholeCall, `"index":0,`, "", 1)+`]}`, `"tool_calls"`), plain)},
	ToolIndexCollision: {answer(called(calls(wholeCall), calls(strings.Replace(twoCalls, `"index":1`, `"index":0`, 1))), request(offering)),
		answer(called(calls(wholeCall), calls(twoCalls)), request(offering))},
	ToolIDMissing:   {answer(called(calls(strings.Replace(wholeCall, `"id":"k1",`, "", 1))), request(offering)), answer(rightCall(), request(offering))},
	ToolIDUnstable:  {answer(called(calls(opens), calls(`{"index":0,"id":"k9","function":{"arguments":"{\"port\":1}"}}`)), request(offering)), answer(called(calls(opens), calls(`{"index":0,"id":"k1","function":{"arguments":"{\"port\":1}"}}`)), request(offering))},
	ToolIDDuplicate: {answer(called(calls(wholeCall), calls(strings.Replace(twoCalls, "k2", "k1", 1))), request(offering)), answer(called(calls(wholeCall), calls(twoCalls)), request(offering))},
	ToolNameMissing: {answer(called(calls(strings.Replace(wholeCall, `"name":"look_up",`, "", 1))), request(offering)), answer(rightCall(), request(offering))},
	ToolNameSplit: {answer(called(calls(strings.Replace(opens, "look_up", "look", 1)), calls(`{"index":0,"function":{"name":"_up"}}`), more(`{"port":1}`)), request(offering)),
		answer(called(calls(opens), calls(`{"index":0,"function":{"name":"","arguments":"{\"port\":1}"}}`)), request(offering))},
	ToolNameRepeated: {answer(called(calls(opens), calls(`{"index":0,"function":{"name":"look_up","arguments":"{\"port\":1}"}}`)), request(offering)),
		answer(called(calls(opens), calls(`{"index":0,"function":{"name":null,"arguments":"{\"port\":1}"}}`)), request(offering))},
	ToolNameUnknown:            {answer(called(calls(strings.Replace(wholeCall, "look_up", "look_down", 1))), request(offering)), answer(called(calls(strings.Replace(wholeCall, "look_up", "look_down", 1))))},
	ToolArgumentsNotString:     {answer(called(calls(strings.Replace(opens, `""`, `{"port":1}`, 1))), request(offering)), answer(called(calls(strings.Replace(opens, `""`, `null`, 1)), more(`{"port":1}`)), request(offering))},
	ToolArgumentsDoubleEncoded: {answer(called(calls(opens), more(`"{\"port\":1}"`)), request(offering)), answer(called(calls(opens), more(`{"port":"{\"a\":1}"}`)), request(offering))},
	ToolArgumentsInvalidJSON:   {answer(called(calls(opens), more(`{"port":`)), request(offering)), answer(told("length", calls(opens), more(`{"port":`)), request(offering))},
	ToolArgumentsMultipleValues: {answer(called(calls(opens), more(`{"port":1}{"port":2}`)), request(offering)),
		answer(called(calls(opens), more(`{"port":1,"day":{}}`+"\n")), request(offering))},
	ToolArgumentsEmpty: {answer(called(calls(opens)), request(offering)), answer(called(calls(opens), more("{}")), request(offering))},
	ToolCallTruncated:  {answer(told("length", calls(opens), more(`{"port":`)), request(offering)), answer(told("length", calls(opens), more(`{"port":1}`)), request(offering))},
	ToolCallDuplicated: {answer(called(calls(wholeCall), calls(strings.NewReplacer(`"index":0`, `"index":1`, "k1", "k2").Replace(wholeCall))), request(offering)),
		answer(called(calls(wholeCall), calls(twoCalls)), request(offering))},
	ToolCallInContent: {answer(told("stop", say("<tool_call>\n{\"name\": \"look_up\""), say("}\n</tool_call>")), request(offering)),
		answer(told("stop", say("<tool_call>\n{\"name\": \"look_up\"}")), request(offering), with(`"tools"`, `"tool_choice":"none","tools"`))},
	ToolCallInReasoning: {answer(told("stop", think("<tool_call><function=look_up></tool_call>")), request(offering)),
		answer(called(think("I could write <tool_call> look_up."), calls(wholeCall)), request(offering))},
	ToolJSONLeakedInContent: {answer(called(say("{\"name\": \"look_up\", \"arguments\": {}}"), calls(wholeCall)), request(offering)),
		answer(called(say("I will call look_up."), calls(wholeCall)), request(offering))},
	NoToolCall:            {answer(words(), request(offering), with(`"tools"`, `"tool_choice":"required","tools"`)), answer(words(), request(offering), with(`"tools"`, `"tool_choice":"auto","tools"`))},
	EmptyAnswerWithTokens: {answer(told("stop")), answer(pieces(role, finish("stop"), usage(10, 1), done))},

	UsageMissing: {answer(pieces(role, say("a"), finish("stop"), done)), answer(pieces(role, say("a"), finish("stop"), done), with("true}", "false}"))},
	UsageZero:    {answer(pieces(role, say("a"), finish("stop"), usage(10, 0), done)), answer(pieces(role, finish("stop"), usage(10, 0), done))},
	UsageInEveryChunk: {answer(told("stop", say("a"), usage(10, 1), usage(10, 2), usage(10, 3))),
		answer(told("stop", say("a"), usage(10, 1)))},
	UsageInconsistent: {answer(told("stop", say("a"), usage(10, 9))), answer(told("stop", say("a"), usage(10, 3)))},
	UsageTotalMismatch: {answer(pieces(role, say("a"), finish("stop"), `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":4}}`+"\n\n", done)),
		answer(pieces(role, say("a"), finish("stop"), `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":null}}`+"\n\n", done))},
	UsageTimingsMismatch: {answer(timings(`"predicted_n":4`, `"predicted_n":5`)), answer(timings(`"prompt_n":10`, `"prompt_n":3`, `"cache_n":0`, `"cache_n":7`))},
	PromptTokensZero:     {answer(pieces(role, say("a"), finish("stop"), usage(0, 4), done)), answer(pieces(role, say("a"), finish("stop"), usage(1, 4), done))},
	CachedExceedsPrompt: {answer(pieces(role, say("a"), finish("stop"), usage(10, 4, `,"prompt_tokens_details":{"cached_tokens":11}`), done)),
		answer(pieces(role, say("a"), finish("stop"), usage(10, 4, `,"prompt_tokens_details":{"cached_tokens":10}`), done))},
	CompletionExceedsMax:       {answer(told("length", say("abc")), with(`"model"`, `"max_tokens":3,"model"`)), answer(told("length", say("abc")), with(`"model"`, `"max_tokens":4,"model"`))},
	MaxTokensExceeded:          {answer(told("length", say("a"), say("b"), say("c"), say("d")), with(`"model"`, `"max_completion_tokens":3,"model"`)), answer(told("length", say("a"), say("b"), say("c"), say("d")), with(`"model"`, `"max_tokens":-1,"model"`))},
	TimingsZero:                {answer(timings(`"prompt_ms":90`, `"prompt_ms":0.0`)), answer(timings(`"predicted_n":4,"predicted_ms":120`, `"predicted_n":1,"predicted_ms":0.0`))},
	TimingsNegative:            {answer(timings(`"predicted_ms":120`, `"predicted_ms":-1`)), answer(timings())},
	TimingsImplausible:         {answer(timings(`"predicted_ms":120`, `"predicted_ms":0.12`)), answer(timings(`"predicted_ms":120`, `"predicted_ms":200`))},
	TimingsIncomplete:          {answer(timings(`"prompt_n":10`, `"prompt_n":"10"`)), answer(timings(`"prompt_per_second":111.1,`, ""))},
	TimingsDoNotCoverWallClock: {answer(timings(`"prompt_ms":90`, `"prompt_ms":0.05`), later(0, time.Second)), answer(timings(`"prompt_ms":90`, `"prompt_ms":50`), later(0, time.Second))},
	QueueWait:                  {answer(timings(), later(0, time.Second)), answer(timings(`"prompt_ms":90`, `"prompt_ms":1050`), later(0, time.Second))},
	InterTokenStall: {answer(told("stop", append(spaced(6, say("a")), say("b"))...), later(7, 2*time.Second)),
		answer(told("stop", append(spaced(6, say("a")), say("b"))...), later(1, 2*time.Second))},

	SpecialTokenLeak: {answer(told("stop", say("a<|im"), say("_end|>"))), answer(told("stop", say("a<|im_end|>")), with("hi", "what is <|im_end|>?"))},
	ChannelResidue:   {answer(told("stop", say(`assistantcode{"port":1}`)), request(offering)), answer(told("stop", say(`assistant code {"port":1}`)), request(offering))},

	TemplateError: {answer(pieces(`{"error":{"message":"jinja2.exceptions.UndefinedError: 'x' is undefined"}}`), status(500)),
		answer(pieces(`{"error":{"message":"out of memory"}}`), status(500))},
	StopIgnored:      {answer(told("stop", say("a END"), say(" b")), stopped("END")), answer(told("stop", say("a"), say(" b")), stopped("END"))},
	StopPrefixLeaked: {answer(told("stop", say("a\n"), say("Us")), stopped("\nUser:")), answer(told("stop", say("a\n")), stopped("\nUser:"))},
	PromptEcho: {answer(told("stop", say("Which harbour has the higher tide? "), say("Brack.")), with("hi", "Which harbour has the higher tide?")),
		answer(told("stop", say("Which harbour"), say(" is meant?")), with("hi", "Which harbour has the higher tide?"))},

	JSONFenced:       {answer(told("stop", say("```json\n"), say(`{"port":"Brack"}`), say("\n```")), shaped), answer(told("stop", say("```json\n{}\n```")))},
	JSONTrailingText: {answer(told("stop", say(`{"port":"Brack"}`), say(" Glad to help.")), shaped), answer(told("stop", say(`{"port":"Brack"}`), say("\n \n")), shaped)},
	JSONTruncated:    {answer(told("stop", say(`{"port":"Bra`)), shaped), answer(told("stop", say(`{"port":"Bra"}`)), shaped)},
	WhitespaceRunaway: {answer(told("length", say(`{"port":`), say(strings.Repeat(" ", 40)), say(strings.Repeat("\n", 40))), shaped),
		answer(told("length", say(`{"port":`), say("   ")), shaped)},
	SchemaIgnored: {answer(told("stop", say(`{"port":`), say(`7}`)), shaped), answer(told("stop", say(`{"port":"7"}`)), shaped)},

	ModelsShape:         {answer(pieces(`[{"id":"m"}]`), listed), answer(pieces(`{"object":"list","data":[],"models":[]}`), listed)},
	ModelsFieldsMissing: {answer(pieces(`{"object":"list","data":[{"id":"m","object":"model"}]}`), listed), answer(pieces(`{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"x","more":null}]}`), listed)},
	ModelsUnavailable:   {answer(pieces(`{"error":"no"}`), listed, status(501)), answer(pieces(`{"error":"no"}`), status(501))},

	HTTP4xx:                 {answer(pieces(`{"error":{"message":"no"}}`), status(400)), answer(pieces(`{"error":"no"}`), status(500))},
	HTTP5xx:                 {answer(pieces("oops"), status(500)), answer(pieces("oops"), status(404))},
	Overloaded:              {answer(pieces(`{"error":"busy"}`), status(503)), answer(pieces(`{"error":"busy"}`), status(502))},
	RateLimited:             {answer(nil, status(429)), answer(nil, status(420))},
	AuthRejected:            {answer(pieces(`{"error":{"message":"key"}}`), status(401)), answer(pieces(`{"error":{"message":"key"}}`), status(400))},
	ModelNotFound:           {answer(pieces(`{"error":{"message":"no such model: m"}}`), status(404)), answer(pieces(`{"error":{"message":"File Not Found"}}`), status(404))},
	Status200ForClientError: {answer(pieces(`{"error":{"message":"no","code":400}}`), kind("application/json")), answer(pieces(`{"error":{"message":"no","code":500}}`), kind("application/json"))},
	InBandError:             {answer(told("stop", `data: {"error":{"message":"no"}}`+"\n\n")), answer(told("stop", say("a"), `data: {"choices":[],"error":null}`+"\n\n"))},
	ConnectionReset:         {answer(words()[:3], ended(fixtures.EndReset)), answer(words(), ended(fixtures.EndReset))},
	TimeoutFirstByte:        {answer(nil, ended(fixtures.EndFirstByte)), answer(nil, ended(fixtures.EndRefused))},
	TimeoutFirstToken:       {answer(pieces(role), ended(fixtures.EndFirstToken)), answer(pieces(role), ended(fixtures.EndCanceled))},
	Stalled:                 {answer(words()[:4], ended(fixtures.EndIdle)), answer(words(), ended(fixtures.EndIdle))},
}

func TestEachFindingIsShownByItsFaultAndNotByANearMiss(t *testing.T) {
	for id := range findingKinds {
		t.Run(id, func(t *testing.T) {
			g := NewWithT(t)
			k, ok := kinds[id]
			g.Expect(ok).To(BeTrue(), "a finding without a test")
			g.Expect(ids(Read(k.shows))).To(ContainElement(id))
			g.Expect(ids(Read(k.nearMiss))).NotTo(ContainElement(id))
		})
	}
}

func TestRightRepliesHaveNoFindings(t *testing.T) {
	for name, e := range map[string]*fixtures.Exchange{
		"text":                   answer(words()),
		"text in one piece":      answer(pieces(strings.Join(words(), ""))),
		"thinking, then text":    answer(told("stop", think("so"), say("yes"))),
		"the other field":        answer(told("stop", delta(`{"reasoning":"so","content":""}`), say("yes"))),
		"both fields the same":   answer(told("stop", delta(`{"reasoning":"so","reasoning_content":"so"}`), say("yes"))),
		"a call":                 answer(rightCall(), request(offering)),
		"thinking, then a call":  answer(called(think("I look."), calls(wholeCall)), request(offering)),
		"two calls":              answer(called(calls(wholeCall), calls(twoCalls)), request(offering)),
		"a call without params":  answer(called(calls(`{"index":0,"id":"k1","type":"function","function":{"name":"now","arguments":"{}"}}`)), request(offering)),
		"timings":                answer(timings()),
		"usage with the finish":  answer(pieces(role, say("a"), `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`+"\n\n", done)),
		"usage null on the way":  answer(pieces(role, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}`+"\n\n", finish("stop"), usage(1, 2), `data: {"choices":[],"usage":null}`+"\n\n", done)),
		"two choices":            answer(pieces(role, say("a"), chunk(`{"index":1,"delta":{"role":"assistant","content":"x"}}`), finish("stop"), usage(10, 4), chunk(`{"index":1,"delta":{},"finish_reason":"stop"}`), usage(10, 2), done), with(`"model"`, `"n":2,"model"`)),
		"no line end at the end": answer(append(words()[:7], "data: [DONE]")),
		"a document":             answer(document(`{"role":"assistant","content":"a"}`, `"stop"`), plain),
		"a call in a document":   answer(document(`{"role":"assistant","content":null,"tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`), plain),
		"tags as words":          answer(told("stop", think("The tag </think> closes."), say("<think> opens and </think> closes."))),
		"tags in the prompt":     answer(told("stop", say("<think> opens")), with("hi", "say <think> opens")),
		"tags asked for":         answer(told("stop", say("<think>so</think>yes")), with(`"model"`, `"reasoning_format":"none","model"`)),
		"comments and retry":     answer(append([]string{"retry: 10\n\n: ping\n\nevent: x\n\n"}, words()...)),
		"an empty data line":     answer(append([]string{"data:\n\n"}, words()...)),
		"an answer like a call":  answer(told("stop", say(`{"port":"Aldwick"}`)), request(offering)),
		"a refrain":              answer(told("stop", spaced(5, say("the same line again\n"))...)),
		"a short equal thought":  answer(told("stop", think("4"), think("2"), think("!"), say("42!"))),
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(Read(e).Findings).To(BeEmpty()) })
	}
}

func TestAFindingThatRepeatsIsKeptOnceWithItsCount(t *testing.T) {
	empty := chunk(`{"index":0,"delta":{"content":"a"},"finish_reason":""}`)
	f := Read(answer(told("stop", empty, empty, empty))).Findings
	g := NewWithT(t)
	g.Expect(f).To(HaveLen(1))
	g.Expect(f[0].Event).To(Equal(1))
	g.Expect(f[0].Sentence).To(ContainSubstring("(seen 3 times)"))
}

func TestFindingsAreBounded(t *testing.T) {
	many := strings.Repeat(`{"index":0},`, 5000)
	f := Read(answer(told("stop", chunk(many+`{"index":0}`)))).Findings
	NewWithT(t).Expect(len(f)).To(BeNumerically("<=", findingsLimit))
}

func TestTheHeaviestOfAKindSpeaksForAll(t *testing.T) {
	twice := "data: {\"id\":\"c1\",\"id\":\"c1\",\"choices\":[]}\n\n"
	broken := "data: {\"choices\":[\n\n"
	for claim, body := range map[string][]string{
		"the lighter one first": told("stop", say("a"), twice, broken),
		"the heavier one first": told("stop", say("a"), broken, twice),
	} {
		t.Run(claim, func(t *testing.T) {
			g := NewWithT(t)
			found := Read(answer(body)).Findings
			i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == InvalidJSONChunk })
			g.Expect(i).To(BeNumerically(">=", 0))
			g.Expect(found[i].Severity).To(Equal(Fault))
		})
	}
}
