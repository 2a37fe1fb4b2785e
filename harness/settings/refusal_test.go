package settings

import (
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// capacity is a command line of capacity settings.
func capacity(set ...string) []string {
	args := []string{"--protocols=capacity"}
	for _, s := range set {
		args = append(args, "--capacity-"+s)
	}
	return args
}

// Each refusal names the setting as its source does, the value, the source, and what would be right.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"unknown.yaml": "model: m\nmodle: x\n", "twice.yaml": "url: http://a\nurl: http://b\n", "value.yaml": "\n\ntimeout-idle: soon\n",
		"list.yaml": "- url\n", "broken.yaml": "url: [\n", "null.yaml": "url:\n", "nest.yaml": "url: {a: b}\n",
		"self.yaml": "config: other.yaml\n", "key.yaml": "api-key: sk-topsecret\n",
	} {
		writeFile(t, dir, name, text)
	}
	cases := []struct {
		name    string
		args    []string
		environ []string
		want    []string
	}{
		{"unknown flag", []string{"--modle", "qwen"}, nil, []string{"--modle", `"qwen"`, "(flag)", "did you mean --model?", "--timeout-idle"}},
		{"unknown flag with one dash", []string{"-urll=http://h"}, nil, []string{"--urll", `"http://h"`, "did you mean --url?"}},
		{"unknown variable", nil, []string{"PLUMBLINE_TIMEOUT_IDEL=3s"}, []string{"PLUMBLINE_TIMEOUT_IDEL", `"3s"`, "(environment)", "did you mean PLUMBLINE_TIMEOUT_IDLE?", "PLUMBLINE_URL"}},
		{"unknown key", []string{"--config=unknown.yaml"}, nil, []string{"modle", `"x"`, `file "unknown.yaml" line 2`, "did you mean model?", "timeout-idle"}},
		{"key set twice", []string{"--config=twice.yaml"}, nil, []string{"url", "line 2", "twice"}},
		{"bad value in the file", []string{"--config=value.yaml"}, nil, []string{`timeout-idle "soon"`, `file "value.yaml" line 3`, "10m"}},
		{"file that is a list", []string{"--config=list.yaml"}, nil, []string{`file "list.yaml"`, "mapping"}},
		{"file that is not YAML", []string{"--config=broken.yaml"}, nil, []string{`file "broken.yaml"`, "not YAML"}},
		{"file that is not there", []string{"--config=absent.yaml"}, nil, []string{`file "absent.yaml"`, "no such file"}},
		{"key without a value", []string{"--config=null.yaml"}, nil, []string{"url", "no value"}},
		{"nested value", []string{"--config=nest.yaml"}, nil, []string{"url", "plain value"}},
		{"file naming a file", []string{"--config=self.yaml"}, nil, []string{"config", "line 1", "another"}},
		{"flag without its value", []string{"--url"}, nil, []string{"--url", "no value"}},
		{"stray argument after a truth value", []string{"--concurrency-stage", "true", "--model=m"}, nil, []string{`"true"`, "--concurrency-stage=true"}},
		{"arguments after a double dash", []string{"--", "--url=http://h"}, nil, []string{"argument", "ignored"}},
		{"empty variable", nil, []string{"PLUMBLINE_URL="}, []string{"PLUMBLINE_URL", "empty"}},
		{"empty flag", []string{"--model="}, nil, []string{"--model", "empty"}},
		{"bad truth value", []string{"--proxy=maybe"}, nil, []string{`--proxy "maybe"`, "true or false"}},
		{"bad duration", []string{"--timeout-connect", "10"}, nil, []string{`--timeout-connect "10"`, "unit"}},
		{"negative duration", []string{"--timeout-connect=-1s"}, nil, []string{"above zero"}},
		{"capacity of zero", []string{"--server-capacity=0"}, nil, []string{"from 1 to 4096"}},
		{"capacity too large", []string{"--server-capacity=4097"}, nil, []string{"from 1 to 4096"}},
		{"bad size", []string{"--max-body=lots"}, nil, []string{`"lots"`, "64MiB"}},
		{"unknown protocol", []string{"--protocols=standard,capacitor"}, nil, []string{"--protocols", "capacitor", "valid values: standard, capacity"}},
		{"capacity setting without the protocol", []string{"--capacity-seed=1"}, nil, []string{"--capacity-seed", "--protocols capacity"}},
		{"no requests", capacity("requests=0"), nil, []string{`--capacity-requests "0"`, "from 1 to 100000"}},
		{"too many workers", capacity("concurrency=4097"), nil, []string{"--capacity-concurrency", "from 1 to 4096"}},
		{"too large a burst", capacity("burst=257"), nil, []string{"--capacity-burst", "from 0 to 256"}},
		{"burst of unique prompts", capacity("burst=4", "prompt-cache-mode=unique"), nil, []string{"--capacity-burst", "unique"}},
		{"prompt too small", capacity("ctx-tokens=31"), nil, []string{`--capacity-ctx-tokens "31"`, "at least 32"}},
		{"unknown cache mode", capacity("prompt-cache-mode=cold"), nil, []string{"shared, unique"}},
		{"seed that is no number", capacity("seed=x"), nil, []string{`--capacity-seed "x"`, "whole number"}},
		{"no tokens", capacity("max-tokens=0"), nil, []string{"from 1 to 65536"}},
		{"canary in too few tokens", capacity("request-canaries", "max-tokens=15"), nil, []string{"--capacity-max-tokens", "at least 16"}},
		{"strict without words", capacity("controlled-output-policy=strict"), nil, []string{"--capacity-controlled-output-policy", "capacity-response-words"}},
		{"unknown policy", capacity("controlled-output-policy=lax"), nil, []string{"observe, strict"}},
		{"unknown thinking mode", capacity("thinking-mode=on"), nil, []string{"default, enabled, disabled, unsupported"}},
		{"effort and thinking", capacity("thinking-mode=enabled", "reasoning-effort=low"), nil, []string{"--capacity-reasoning-effort", `--capacity-thinking-mode "enabled"`}},
		{"effort that is no word", capacity("reasoning-effort=VERY high"), nil, []string{"--capacity-reasoning-effort", "small letters"}},
		{"temperature too high", capacity("temperature=2.1"), nil, []string{`--capacity-temperature "2.1"`, "from 0 to 2"}},
		{"temperature that is no number", capacity("temperature=NaN"), nil, []string{"from 0 to 2"}},
		{"top-p too high", capacity("top-p=1.5"), nil, []string{"from 0 to 1"}},
		{"clock of a bad name", capacity("clock-domain-id=a b"), nil, []string{"--capacity-clock-domain-id", "1 to 64"}},
		{"fingerprint of another form", capacity("configuration-fingerprint=md5:00"), nil, []string{"sha256:", "64 hex"}},
		{"time-out of nothing", capacity("timeout=0s"), nil, []string{"above zero"}},
		{"open loop without a rate", capacity("arrival=poisson"), nil, []string{"--capacity-arrival", "capacity-rate"}},
		{"rate without an open loop", capacity("rate=2"), nil, []string{"--capacity-rate", "capacity-arrival"}},
		{"level of nothing", capacity("sweep=0,2"), nil, []string{"--capacity-sweep", "from 1 to 4096"}},
		{"fewer requests than the level", capacity("sweep=2,64", "sweep-requests=32"), nil, []string{"--capacity-sweep-requests", "64"}},
		{"share beyond one", capacity("abort-error-rate=5"), nil, []string{"from 0 to 1"}},
		{"objective without a time", []string{"--protocols=capacity", "--slo=ttft"}, nil, []string{"--slo", "ttft=2s,tpot=60ms"}},
		{"objective of another figure", []string{"--protocols=capacity", "--slo=itl=2s"}, nil, []string{"--slo", "ttft, tpot, e2e"}},
		{"objective given twice", []string{"--protocols=capacity", "--slo=ttft=2s,ttft=3s"}, nil, []string{"--slo", "twice"}},
		{"unknown progress", nil, []string{"PLUMBLINE_PROGRESS=plane"}, []string{`PLUMBLINE_PROGRESS "plane"`, "did you mean plain?", "auto, plain, none"}},
		{"relative address", []string{"--url=localhost:8080"}, nil, []string{"http://127.0.0.1:8080"}},
		{"address of another scheme", []string{"--url=ftp://h"}, nil, []string{"absolute address"}},
		{"address without host", []string{"--url=http://"}, nil, []string{"absolute address"}},
		{"address with a query", []string{"--url=http://h/?a=b"}, nil, []string{"without query"}},
		{"address with a fragment", []string{"--url=http://h/#x"}, nil, []string{"without query or fragment"}},
		{"address with port 0", []string{"--url=http://h:0"}, nil, []string{"65535"}},
		{"address with the version path", []string{"--url=http://h:8/v1/"}, nil, []string{"give http://h:8"}},
		{"address with the whole path", []string{"--url=http://h:8/v1/chat/completions"}, nil, []string{"give http://h:8"}},
		{"pace of a live engine", []string{"--url=http://h", "--mock-pace=real"}, nil, []string{"--mock-pace", `--url "http://h"`}},
		{"engine that is none", []string{"--engine=llama.cpp-proces"}, nil, []string{`--engine "llama.cpp-proces"`, "llama.cpp-process", "vllm-container"}},
		{"engine and address", []string{"--engine=mock-container", "--url=http://h"}, nil, []string{"--engine", `--url "http://h"`, "contradicts"}},
		{"live engine without an address", []string{"--engine=live"}, nil, []string{"--engine", "--url"}},
		{"a replay of nothing", []string{"--engine=replay"}, nil, []string{"--engine", "--replay"}},
		{"a replay in place of a server", []string{"--url=http://h", "--replay=/r"}, nil, []string{"--replay", `"replay"`}},
		{"a replay and a server", []string{"--url=http://h", "--engine=replay", "--replay=/r"}, nil, []string{"--engine", `--url "http://h"`}},
		{"pace of a started mock", []string{"--engine=mock-process", "--mock-pace=real"}, nil, []string{"--mock-pace", `--engine "mock-process"`}},
		{"image of a process", []string{"--engine=vllm-process", "--image=i"}, nil, []string{"--image", `--engine "vllm-process"`, "container"}},
		{"pull for a process", []string{"--engine=vllm-process", "--engine-pull"}, nil, []string{"--engine-pull", "container"}},
		{"command of a container", []string{"--engine=vllm-container", "--command=c"}, nil, []string{"--command", "process"}},
		{"argument for nothing that is started", []string{"--url=http://h", "--engine-arg=-v"}, nil, []string{"--engine-arg", "--engine"}},
		{"port of the built-in mock", []string{"--engine=mock", "--engine-port=80"}, nil, []string{"--engine-port"}},
		{"time for nothing that is started", []string{"--engine-start-timeout=1s"}, nil, []string{"--engine-start-timeout"}},
		{"pace of a live engine, other sources", []string{"--mock-pace=real"}, []string{"PLUMBLINE_URL=http://h"}, []string{"--mock-pace", `PLUMBLINE_URL "http://h" (environment)`}},
		{"total below first token", []string{"--timeout-total=1m", "--timeout-first-token=2m"}, nil, []string{"--timeout-first-token", `--timeout-total "1m"`, "longer"}},
		{"first token beyond the default total", []string{"--timeout-first-token=40m"}, nil, []string{"--timeout-first-token", `--timeout-total "30m"`, "default"}},
		{"two places of the key", []string{"--credential-env=K", "--credential-file=k"}, []string{"K=v"}, []string{"--credential-env", "--credential-file"}},
		{"variable that is not there", []string{"--credential-env=NO_SUCH"}, nil, []string{`"NO_SUCH"`, "no such variable"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := resolve(t, c.args, c.environ, dir)
			g.Expect(err).To(HaveOccurred())
			for _, w := range c.want {
				g.Expect(err.Error()).To(ContainSubstring(w))
			}
			fault, ok := errors.AsType[*Fault](err)
			g.Expect(ok).To(BeTrue())
			g.Expect(fault.Name).NotTo(BeEmpty())
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	g := NewWithT(t)
	_, err := resolve(t, []string{"--server-capacity=0", "--progress=x"}, []string{"PLUMBLINE_NOPE=1", "PLUMBLINE_MAX_BODY=x"}, "/b")
	for _, name := range []string{"--server-capacity", "--progress", "PLUMBLINE_NOPE", "PLUMBLINE_MAX_BODY"} {
		g.Expect(err).To(MatchError(ContainSubstring(name)))
	}
}

func TestFlagsOfOthersPassTheCheck(t *testing.T) {
	fs := flag.NewFlagSet("suite", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	Register(fs)
	fs.Int64("ginkgo.seed", 0, "")
	fs.Bool("test.v", false, "")
	if err := CheckArgs([]string{"--test.v", "--ginkgo.seed=7", "-ginkgo.seed", "8", "--url", "-x", "--"}, fs); err != nil {
		t.Error(err)
	}
	err := CheckArgs([]string{"--ginkgo.sed=7"}, fs)
	if err == nil || strings.Contains(err.Error(), "--test.v") {
		t.Errorf("want a fault that lists the suite's own flags only, got %v", err)
	}
}

// A key given in any wrong place is refused with the right way, and is shown nowhere.
func TestAKeyInTheWrongPlaceIsNeverShown(t *testing.T) {
	const key = "sk-topsecret"
	dir := t.TempDir()
	writeFile(t, dir, "key.yaml", "api-key: "+key+"\n")
	for name, c := range map[string]struct{ args, environ []string }{
		"flag":                {[]string{"--api-key", key}, nil},
		"flag with equals":    {[]string{"--token=" + key}, nil},
		"short flag":          {[]string{"-key=" + key}, nil},
		"variable":            {nil, []string{"PLUMBLINE_API_KEY=" + key}},
		"file":                {[]string{"--config=key.yaml"}, nil},
		"address":             {[]string{"--url=http://me:" + key + "@host"}, nil},
		"address, slashes":    {[]string{"--url=http://me:/" + key + "@host"}, nil},
		"address, query":      {[]string{"--url=http://host?key=" + key}, nil},
		"name of variable":    {[]string{"--credential-env=" + key}, nil},
		"name, letters only":  {[]string{"--credential-env=sktopsecret"}, nil},
		"name, from variable": {nil, []string{"PLUMBLINE_CREDENTIAL_ENV=" + key}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := resolve(t, c.args, c.environ, dir)
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).NotTo(ContainSubstring("topsecret"))
		})
	}
	_, err := resolve(t, []string{"--api-key=" + key}, nil, dir)
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("--credential-env"), ContainSubstring("--credential-file"))))
}

func TestTheKeyMayLieInAVariableOfOurPrefix(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "c.yaml", "credential-env: PLUMBLINE_MY_KEY\n")
	environ := []string{"PLUMBLINE_MY_KEY=k"}
	for _, args := range [][]string{{"--credential-env=PLUMBLINE_MY_KEY"}, {"--config=c.yaml"}} {
		if _, err := resolve(t, args, environ, dir); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := resolve(t, nil, environ, dir); err == nil {
		t.Error("the variable is accepted although nothing names it")
	}
}

func TestAnUnreadableFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := writeFile(t, dir, "big.yaml", "#"+strings.Repeat("x", maxFile)+"\n")
	if _, err := resolve(t, []string{"--config", path}, nil, dir); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a file beyond the bound: %v", err)
	}
	if err := os.Mkdir(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(t, []string{"--config", path + ".d"}, nil, dir); err == nil {
		t.Error("a directory is taken for a file")
	}
}

func FuzzSettingsFile(f *testing.F) {
	f.Add("url: http://h\nmodel-file: [a, b]\n")
	f.Add("a: &x 1\nb: *x\n")
	f.Add("? [1]\n: 2\n")
	f.Add("url: &a [*a]\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := writeFile(t, dir, "f.yaml", text)
		found, faults := readFile(path, "f.yaml")
		for name, o := range found {
			if _, ok := byFlag(name); !ok || len(o.texts) == 0 {
				t.Errorf("accepted %q with %q from %q (faults %v)", name, o.texts, text, faults)
			}
		}
	})
}
