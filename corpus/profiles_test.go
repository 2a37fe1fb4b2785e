package corpus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

func TestEveryBuiltInProfileLoadsAndSaysWhereItsNumbersComeFrom(t *testing.T) {
	g := gomega.NewWithT(t)
	g.Expect(Profiles()).To(gomega.ContainElements(DefaultProfile, "plain-greedy"))
	for _, name := range Profiles() {
		p, err := LoadProfile(name)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(p.Name).To(gomega.Equal(name))
		g.Expect(len(p.Notes)).To(gomega.BeNumerically(">", 80), name)
	}
}

func TestTheDefaultProfileIsSentAsTheProtocolSays(t *testing.T) {
	g := gomega.NewWithT(t)
	p, err := LoadProfile(DefaultProfile)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	// The exact bytes: the order of keys and the decimals are shown in the result document as they are here.
	g.Expect(string(p.Sampling)).To(gomega.Equal(`{"temperature":1.0,"top_p":0.95,"top_k":20,"min_p":0.0,"presence_penalty":0.0,` +
		`"repetition_penalty":1.0,"reasoning_effort":"xhigh"}`))
	g.Expect(string(p.ChatTemplateKwargs)).To(gomega.Equal(`{"enable_thinking":true,"preserve_thinking":true}`))
	g.Expect(p.TemplateHead).To(gomega.Equal(TemplateHead{Plain: 50, Tools: 62}))
	pack, err := Default()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(p.Tokenizer).To(gomega.Equal(pack.Tokenizer))
}

func TestAnUnknownProfileIsRefusedWithTheValidOnes(t *testing.T) {
	for _, name := range []string{"", "qwen", "../corpus", "a\\b", "plain-greedy/"} {
		_, err := LoadProfile(name)
		gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("%q", name), gomega.ContainSubstring(DefaultProfile), gomega.ContainSubstring("plain-greedy"))))
	}
}

func TestAProfileIsReadFromAFile(t *testing.T) {
	g := gomega.NewWithT(t)
	file := filepath.Join(t.TempDir(), "mine.json")
	write := func(text string) { g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(gomega.Succeed()) }
	write(`{"name": "mine", "sampling": {"top_p": 0.50, "temperature": 1e0}, "tokenizer": "", "template_head": {"plain": 3, "tools": 9, "pinned": true}, "notes": ""}`)
	p, err := LoadProfile(file)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(p.Sampling)).To(gomega.Equal(`{"top_p":0.50,"temperature":1e0}`))
	g.Expect(p.ChatTemplateKwargs).To(gomega.BeEmpty())
	g.Expect(p.TemplateHead.Pinned).To(gomega.BeTrue())
	g.Expect(p.BuiltIn).To(gomega.BeFalse())

	for text, want := range map[string]string{
		`{"name": "", "sampling": {}}`:                                  "name is empty",
		`{"name": "m"}`:                                                 "sampling: expected an object",
		`{"name": "m", "sampling": [1]}`:                                "sampling: expected an object",
		`{"name": "m", "sampling": {"top_p": 1, "top_p": 0.5}}`:         "top_p",
		`{"name": "m", "sampling": {"seed": 4}}`:                        `"seed" is set by the protocol`,
		`{"name": "m", "sampling": {"max_tokens": 4}}`:                  `"max_tokens" is set by the protocol`,
		`{"name": "m", "sampling": {"max_completion_tokens": 4}}`:       `"max_completion_tokens" is set by the protocol`,
		`{"name": "m", "sampling": {"n": 2}}`:                           `"n" is set by the protocol`,
		`{"name": "m", "sampling": {"stop": ["a"]}}`:                    `"stop" is set by the protocol`,
		`{"name": "m", "sampling": {"tool_choice": "none"}}`:            `"tool_choice" is set by the protocol`,
		`{"name": "m", "sampling": {"response_format": {}}}`:            `"response_format" is set by the protocol`,
		`{"name": "m", "sampling": {"logprobs": true}}`:                 `"logprobs" is set by the protocol`,
		`{"name": "m", "sampling": {"stream_usage": true}}`:             `"stream_usage" is set by the protocol`,
		`{"name": "m", "sampling": {"temperature": "hot"}}`:             `sampling: "temperature": expected a number, received "hot"`,
		`{"name": "m", "sampling": {"top_p": null}}`:                    `sampling: "top_p": expected a number, received null`,
		`{"name": "m", "sampling": {"top_k": [1]}}`:                     `"top_k": expected a number`,
		`{"name": "m", "sampling": {"min_p": true}}`:                    `"min_p": expected a number`,
		`{"name": "m", "sampling": {"presence_penalty": {}}}`:           `"presence_penalty": expected a number`,
		`{"name": "m", "sampling": {"frequency_penalty": ""}}`:          `"frequency_penalty": expected a number`,
		`{"name": "m", "sampling": {"repetition_penalty": "1"}}`:        `"repetition_penalty": expected a number`,
		`{"name": "plain-greedy", "sampling": {}}`:                      `the name "plain-greedy" is that of a built-in profile`,
		`{"name": "m", "sampling": {}, "chat_template_kwargs": true}`:   "chat_template_kwargs: expected an object",
		`{"name": "m", "sampling": {}, "template_head": {"plain": -1}}`: "received -1",
		`{"name": "m", "sampling": {}, "temprature": 1}`:                "temprature",
		`{"name": "m", "sampling": {}, "notes": 3}`:                     "notes",
		`{"name": "m", "sampling": {}} {}`:                              "after",
	} {
		write(text)
		_, err := LoadProfile(file)
		g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("mine.json"), gomega.ContainSubstring(want))), text)
	}
	_, err = LoadProfile(file + ".none.json")
	g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
}
