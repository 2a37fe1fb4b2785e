package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

	"plumbline/fixtures"
)

const secretText = "sk-topsecret"

func TestASecretIsShownByNoWayOfPrinting(t *testing.T) {
	g := NewWithT(t)
	s := Secret{secretText}
	holder := struct {
		Key Secret
		Ptr *Secret
	}{s, &s}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", s, "holder", holder)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", s, "holder", holder)
	j, err := json.Marshal(holder)
	g.Expect(err).NotTo(HaveOccurred())
	m, err := json.Marshal(map[Secret]int{s: 1})
	g.Expect(err).NotTo(HaveOccurred())
	y, err := yaml.Marshal(holder)
	g.Expect(err).NotTo(HaveOccurred())
	all := []string{log.String(), string(j), string(m), string(y), s.String(), fmt.Errorf("key %w", fmt.Errorf("%v", s)).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
		all = append(all, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, holder), fmt.Sprintf(verb, []Secret{s}))
	}
	for _, text := range all {
		g.Expect(text).NotTo(ContainSubstring("topsecret"))
		g.Expect(text).NotTo(ContainSubstring(fmt.Sprintf("%x", secretText)))
	}
	g.Expect(s.Reveal()).To(Equal(secretText))
}

func TestTheCredentialIsReadWhereTheSettingsSay(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	t.Setenv("SOME_KEY", secretText)
	writeFile(t, dir, "k", "  "+secretText+"\n")
	for _, args := range [][]string{{"--credential-env=SOME_KEY"}, {"--credential-file=k"}} {
		s, err := resolve(t, args, []string{"SOME_KEY=x"}, dir)
		g.Expect(err).NotTo(HaveOccurred())
		key, err := s.Credential()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(key.Reveal()).To(Equal(secretText))
		g.Expect(fmt.Sprintf("%+v %s", s, s.Redacted())).NotTo(ContainSubstring("topsecret"))
	}
	s, err := resolve(t, nil, nil, dir)
	g.Expect(err).NotTo(HaveOccurred())
	key, err := s.Credential()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(key.Empty()).To(BeTrue())
}

func TestAnUnusableCredentialIsRefusedWithoutShowingIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": " \n", "two lines": "topsecret\r\nX-Evil: topsecret", "not ASCII": "topsecret\u00e9", "space": "top topsecret",
		"long": strings.Repeat("topsecret", maxCredential),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := (&Settings{CredentialFile: writeFile(t, dir, "k", text)}).Credential()
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).NotTo(ContainSubstring("topsecret"))
		})
	}
	if _, err := (&Settings{CredentialFile: dir + "/absent"}).Credential(); err == nil {
		t.Error("an absent file gives a credential")
	}
	if _, err := (&Settings{CredentialEnv: "PLUMBLINE_TEST_ABSENT"}).Credential(); err == nil {
		t.Error("an absent variable gives a credential")
	}
}

func TestRedactedShowsEverySettingInOrderWithItsSource(t *testing.T) {
	g := NewWithT(t)
	s, err := resolve(t, []string{"--url=http://h:1/", "--out=o", "--server-capacity=2"}, []string{"PLUMBLINE_TRACK=<a&b>"}, "/base")
	g.Expect(err).NotTo(HaveOccurred())
	raw := s.Redacted()
	var got map[string]struct {
		Value  any
		Source string
	}
	g.Expect(json.Unmarshal(raw, &got)).To(Succeed())
	g.Expect(got).To(HaveLen(len(fields)))
	g.Expect(got["url"].Value).To(Equal("http://h:1"))
	g.Expect(got["url"].Source).To(Equal("flag"))
	g.Expect(got["out"].Value).To(Equal("o"), "paths are shown as given")
	g.Expect(got["server-capacity"].Value).To(Equal(2.0))
	g.Expect(got["track"].Source).To(Equal("environment"))
	g.Expect(string(raw)).To(ContainSubstring("<a&b>"))
	g.Expect(got["timeout-total"].Value).To(Equal("30m0s"))
	g.Expect(got["model"].Value).To(BeNil())
	g.Expect(got["model"].Source).To(Equal("default"))
	last := -1
	for _, f := range fields {
		at := strings.Index(string(raw), "\n  \""+f.flag+"\":")
		g.Expect(at).To(BeNumerically(">", last), f.flag)
		last = at
	}
}

// The line is given to a real shell, which must hand on the very same words.
func TestCommandIsReadByAShellAsTheSameWords(t *testing.T) {
	g := NewWithT(t)
	args := []string{"--track-notes", `it's "5" $HOME; rm -rf * \n`, "--model=a b", "", "--x=\u00e9\nz", "--url=http://h:1"}
	s, err := resolve(t, nil, []string{"PLUMBLINE_BACKGROUND=a 'b'"}, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	line := s.Command("printf", append([]string{`%s\0`}, args...))
	g.Expect(line).To(HavePrefix(`PLUMBLINE_BACKGROUND='a '\''b'\''' printf `))
	out, err := exec.Command("sh", "-c", line).Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")).To(Equal(args))
}

func TestCommandLeavesOutWhatMayBeSecret(t *testing.T) {
	g := NewWithT(t)
	s := &Settings{}
	for _, args := range [][]string{{"--api-key", secretText}, {"--token=" + secretText}, {"--url=http://u:" + secretText + "@h"},
		{"http://h/?k=" + secretText}} {
		line := s.Command("p", args)
		g.Expect(line).NotTo(ContainSubstring("topsecret"))
	}
	g.Expect(s.Command("p", []string{"--credential-env", "NAME", "--credential-file", "f"})).
		To(Equal("p --credential-env NAME --credential-file f"))
}

func TestNearestNames(t *testing.T) {
	g := NewWithT(t)
	g.Expect(distance("kitten", "sitting")).To(Equal(3))
	g.Expect(distance("", "abc")).To(Equal(3))
	g.Expect(distance("abc", "abc")).To(Equal(0))
	g.Expect(suggestion("completely-different", []string{"url"})).To(BeEmpty())
	all := names(asFlag)
	g.Expect(slices.Contains(all, "--url")).To(BeTrue())
}

// Every declaration that the record has room for is a setting of the same name, and is handed on.
func TestEveryDeclarationReachesTheRecord(t *testing.T) {
	g := NewWithT(t)
	var args []string
	for _, f := range fields {
		if f.kind == kindText && len(f.index) == 1 && !f.list && f.enum == nil {
			args = append(args, "--"+f.flag+"="+f.flag)
		}
	}
	args = slices.DeleteFunc(args, func(a string) bool { // these have meanings of their own
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"--url", "--engine", "--image"}, name)
	})
	s, err := resolve(t, append(args, "--skip-model-hash"), nil, "/b")
	g.Expect(err).NotTo(HaveOccurred())
	data, err := json.Marshal(s.Declared())
	g.Expect(err).NotTo(HaveOccurred())
	var got map[string]any
	g.Expect(json.Unmarshal(data, &got)).To(Succeed())
	g.Expect(got).To(HaveLen(reflect.TypeFor[fixtures.Declared]().NumField()))
	for name, value := range got {
		if name == "skip_model_hash" {
			g.Expect(value).To(BeTrue())
			continue
		}
		g.Expect(value).To(Equal(strings.ReplaceAll(name, "_", "-")))
	}
}
