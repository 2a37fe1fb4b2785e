package transcript

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"plumbline/fixtures"
)

// Faults come in many forms, and what looks like one often is none. Each reply here has just the findings named.
func TestFormsOfOneFault(t *testing.T) {
	object := with(`"model"`, `"response_format":{"type":"json_object"},"model"`)
	noUsage := with("true}", "false}")
	for form, c := range map[string]struct {
		e    *fixtures.Exchange
		want []string
	}{
		"blank text before a stop string":        {answer(told("stop", say("a\n\n")), stopped("\n\nUser:")), nil},
		"one letter of a stop string":            {answer(told("stop", say("THE")), stopped("END")), nil},
		"a stop string's beginning, cut":         {answer(told("length", say("a\nUs")), stopped("\nUser:")), nil},
		"a stop string that was asked for":       {answer(told("stop", say("a END")), stopped("END"), with(`"model"`, `"include_stop_str_in_output":true,"model"`)), nil},
		"a stop string in the thinking":          {answer(told("stop", think("END?"), say("a")), stopped("END")), nil},
		"one stop string alone":                  {answer(told("stop", say("a END")), with(`"model"`, `"stop":"END","model"`)), []string{StopIgnored}},
		"white space behind whole JSON":          {answer(told("stop", say(`{"port":"x"}`), say(strings.Repeat(" ", 40))), shaped), nil},
		"white space without end":                {answer(told("stop", say(`{"port":`), say(strings.Repeat("\n", 600)), say(`"x"}`)), shaped), []string{WhitespaceRunaway}},
		"JSON cut by its limit":                  {answer(told("length", say(`{"port":"Al`)), shaped), []string{JSONTruncated}},
		"a fence with text around":               {answer(told("stop", say("Here:\n```json\n{\"port\":\"x\"}\n```\nBye")), shaped), []string{JSONFenced, JSONTrailingText}},
		"a fence that is not closed":             {answer(told("length", say("```json\n{\"port\":\"Al")), shaped), []string{JSONFenced, JSONTruncated}},
		"text in front":                          {answer(told("stop", say(`Sure! {"port":"x"}`)), shaped), []string{JSONTrailingText}},
		"prose with a brace":                     {answer(told("stop", say(`The set {a, b} is it.`)), shaped), []string{SchemaIgnored}},
		"a member too many":                      {answer(told("stop", say(`{"port":"x","day":1}`)), shaped), []string{SchemaIgnored}},
		"a list where an object is asked for":    {answer(told("stop", say(`[1]`)), object), []string{SchemaIgnored}},
		"an object as asked for":                 {answer(told("stop", say(` {"a":[1]} `)), object), nil},
		"a call where JSON is asked for":         {answer(rightCall(), request(offering), object), nil},
		"three deltas that grow":                 {answer(told("stop", say("The lamp"), say("The lamp is"), say("The lamp is lit."))), []string{CumulativeDelta}},
		"a letter that others begin with":        {answer(told("stop", say("A"), say("And"), say("Android is a word."))), nil},
		"the role's name before the text":        {answer(told("stop", say("assistant"), say("\nThe lamp."))), []string{ChannelResidue}},
		"a role glued to a channel":              {answer(told("stop", say("analysis"), say("We think."), say("assistant"), say("final"), say("Lit."))), []string{ChannelResidue}},
		"the word assistant":                     {answer(told("stop", say("assistant is a word, analysis too"))), nil},
		"a control token that no list names":     {answer(told("stop", say("a<|im_sep|>b"))), []string{SpecialTokenLeak}},
		"an end token of an older template":      {answer(told("stop", say("a</s>"))), []string{SpecialTokenLeak}},
		"struck text":                            {answer(told("stop", say("<s>no</s> yes"))), []string{SpecialTokenLeak}},
		"struck text in the middle":              {answer(told("stop", say("a <s>no</s> yes"))), nil},
		"more pieces than allowed, no usage":     {answer(pieces(role, say("a"), say("b"), finish("length"), done), noUsage, with(`"model"`, `"max_tokens":1,"model"`)), []string{MaxTokensExceeded}},
		"a whole message in a delta's place":     {answer(told("stop", chunk(`{"index":0,"message":{"content":"a"},"finish_reason":null}`))), []string{DeltaNull}},
		"a call cut, and called complete":        {answer(called(calls(opens), more(`{"port":"Al`)), request(offering)), []string{ToolArgumentsInvalidJSON, ToolCallTruncated}},
		"a call's arguments in single quotes":    {answer(called(calls(opens), more(`{'port':'Al'}`)), request(offering)), []string{ToolArgumentsInvalidJSON}},
		"the role with each thought":             {answer(told("stop", delta(`{"role":"assistant","content":"","reasoning":"so"}`), delta(`{"role":"assistant","content":"","reasoning":"!"}`), say("a"))), nil},
		"a first chunk without choices and name": {answer(append(pieces("data: {\"id\":\"c1\",\"model\":\"\",\"choices\":[]}\n\n"), told("stop", say("a"))...)), nil},
		"a pause among quick tokens":             {answer(told("stop", spaced(6, say("a"))...), later(4, 600*time.Millisecond)), []string{InterTokenStall}},
		"an error about the template in a reply": {answer(pieces(`{"error":{"message":"failed to apply chat template","code":400}}`), status(400)), []string{HTTP4xx, TemplateError}},
	} {
		t.Run(form, func(t *testing.T) { NewWithT(t).Expect(ids(Read(c.e))).To(ConsistOf(c.want)) })
	}
}

func TestAModelListIsReadInItsForms(t *testing.T) {
	const whole = `"object":"model","created":1,"owned_by":"x"`
	for body, c := range map[string]struct {
		ids   []string
		found []string
		fault bool
	}{
		`{"object":"list","data":[{"id":"a",` + whole + `},{"id":"b",` + whole + `}]}`:         {[]string{"a", "b"}, nil, false},
		`{"object":"list","models":[{"name":"n"}],"data":[{"id":"a",` + whole + `}]}`:          {[]string{"a"}, nil, false},
		`{"object":"list","data":[{"id":"a","object":"model","created":null,"owned_by":"x"}]}`: {[]string{"a"}, []string{ModelsFieldsMissing}, false},
		`[{"id":"a",` + whole + `}]`:                              {[]string{"a"}, []string{ModelsShape}, false},
		`{"object":"list","models":[{"name":"n",` + whole + `}]}`: {[]string{"n"}, []string{ModelsShape, ModelsShape}, true},
		`{"object":"list","data":["a"]}`:                          {[]string{"a"}, []string{ModelsShape}, false},
		`{"object":"list","data":null}`:                           {nil, []string{ModelsShape}, true},
		`{"object":"list","data":{}}`:                             {nil, []string{ModelsShape}, true},
		`<html>`:                                                  {nil, []string{ModelsUnavailable}, true},
		`{"object":"list","data":[` + strings.Repeat(`{"id":"a",`+whole+`},`, 2) + `{"id":"a",` + whole + `}]}`: {[]string{"a", "a", "a"}, nil, false},
	} {
		tr := Read(answer(pieces(body), listed))
		g := NewWithT(t)
		g.Expect(tr.ModelIDs).To(Equal(c.ids), body)
		found := ids(tr)
		if strings.HasPrefix(body, "<") {
			g.Expect(found).To(ContainElements(c.found), body)
		} else {
			g.Expect(found).To(ConsistOf(c.found), body)
		}
		fault := false
		for _, f := range tr.Findings {
			fault = fault || f.Severity == Fault
		}
		g.Expect(fault).To(Equal(c.fault), body)
	}
}

func TestACountThatIsOffByMoreThanTheEndTokenIsAFault(t *testing.T) {
	for n, severity := range map[string]Severity{"5": Warning, "3": Warning, "6": Fault, "2": Fault} {
		f := Read(answer(timings(`"predicted_n":4`, `"predicted_n":`+n))).Findings
		g := NewWithT(t)
		g.Expect(f).NotTo(BeEmpty())
		g.Expect(f[0].ID).To(Equal(UsageTimingsMismatch))
		g.Expect(f[0].Severity).To(Equal(severity), n)
	}
}

func TestNothingIsConcludedFromTimesThatMeanNothing(t *testing.T) {
	for _, e := range []*fixtures.Exchange{
		kinds[StreamBuffered].shows, kinds[InterTokenStall].shows, kinds[QueueWait].shows, kinds[TimingsImplausible].shows, kinds[TimingsDoNotCoverWallClock].shows,
	} {
		g := NewWithT(t)
		g.Expect(Read(e).Findings).NotTo(BeEmpty())
		g.Expect(ReadUntimed(e).Findings).To(BeEmpty())
		g.Expect(ReadUntimed(e).Content).To(Equal(Read(e).Content))
	}
	NewWithT(t).Expect(ids(ReadUntimed(kinds[TimingsNegative].shows))).To(ContainElement(TimingsNegative))
}
