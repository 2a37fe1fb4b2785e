// Package settings holds everything an operator can choose for a run as one struct, read from flags, the environment
// and a YAML file, in that order of precedence. It checks what it reads, says where each value came from and shows
// the result with nothing secret in it. It never reaches out: no connection, no engine, no reading of a credential
// before it is used.
package settings

import (
	"path/filepath"
	"time"
)

// EnvPrefix begins the name of every environment variable that the suite reads for a setting.
const EnvPrefix = "PLUMBLINE_"

// Settings is what a run was asked to do. The tags are the one place where a setting is described:
//
//	flag     its name: --a-b on the command line, PLUMBLINE_A_B in the environment, a-b in the file
//	help     what it does
//	default  its value when nobody sets it
//	unset    what happens when there is no value, for settings without a default
//	enum     the values that are valid, for settings with a fixed list
//	kind     path: resolved against the base directory; name-or-file: a name, or such a path ending in .json; bytes: a size
//	         such as 64MiB; variable: an environment variable's name; program: the name of a program, or such a path with a
//	         slash in it; word: a text as it stands, so that a list has one a flag and one a line of a variable
//	min, max the bounds of a number
//
// A credential is never in it: CredentialEnv and CredentialFile say where it is, Credential reads it.
type Settings struct {
	Config string `flag:"config" kind:"path" help:"YAML file with further settings" unset:"no file"`

	URL                string        `flag:"url" help:"base address of the server under test, such as http://127.0.0.1:8080" unset:"the built-in mock engine"`
	Engine             string        `flag:"engine" help:"how the engine is had: live (the server at --url), mock (the built-in one), replay (what was recorded, given again), or started here for the run from a recipe: NAME-process or NAME-container, such as llama.cpp-process; docs/engines.md lists them" unset:"live with --url, else mock"`
	Replay             []string      `flag:"replay" kind:"path" help:"record whose responses the engine replay gives again, at the recorded pace: a run's outputs.jsonl, cases; may be given several times" unset:"none"`
	Image              string        `flag:"image" help:"image to start the container from" unset:"the recipe's"`
	EnginePull         bool          `flag:"engine-pull" default:"false" help:"let the image be pulled when it is not on this machine; otherwise nothing is ever pulled"`
	EngineCommand      string        `flag:"command" kind:"program" help:"program to start the process from, by name or path" unset:"the recipe's"`
	EngineArg          []string      `flag:"engine-arg" kind:"word" help:"one more argument for the started engine, after the recipe's; may be given several times; may hold the recipe's variables, such as {{port}}" unset:"the recipe's alone"`
	EnginePort         int           `flag:"engine-port" min:"1" max:"65535" help:"port of this machine for the started engine" unset:"a free one"`
	EngineStartTimeout time.Duration `flag:"engine-start-timeout" help:"longest wait until the started engine has answered its first request" unset:"the recipe's"`
	KeepEngineLog      bool          `flag:"keep-engine-log" default:"true" help:"keep engine.log, all that the started engine wrote, in the run's folder; with false it is removed after a run in which the engine started and did not end by itself"`

	Model          string `flag:"model" help:"model to ask for, by an id or alias that the server lists" unset:"the only one served"`
	CredentialEnv  string `flag:"credential-env" kind:"variable" help:"NAME of the environment variable that holds the API key" unset:"no key is sent"`
	CredentialFile string `flag:"credential-file" kind:"path" help:"file that holds the API key" unset:"no key is sent"`
	Proxy          bool   `flag:"proxy" default:"false" help:"use the proxies named in HTTP_PROXY, HTTPS_PROXY and NO_PROXY; otherwise they are ignored, as a proxy is part of what would be measured"`
	HTTP2          bool   `flag:"http2" default:"false" help:"speak HTTP/2 to the server instead of HTTP/1.1"`

	Protocols        []string `flag:"protocols" default:"standard" enum:"standard,capacity" help:"protocols to run"`
	Profile          string   `flag:"profile" kind:"name-or-file" default:"qwen3.8-flash-next-thinking" help:"what the model family needs: sampling and template arguments; a built-in profile's name, or a JSON file"`
	Corpus           string   `flag:"corpus" kind:"path" help:"directory of a corpus pack to use instead of the built-in one" unset:"the built-in pack"`
	ConcurrencyStage bool     `flag:"concurrency-stage" default:"false" help:"also run the optional concurrency stage"`
	ServerCapacity   int      `flag:"server-capacity" min:"1" max:"4096" help:"how many requests the server serves at once" unset:"what the server tells"`
	MockPace         string   `flag:"mock-pace" default:"fast" help:"pace of the built-in mock engine: fast, real, or a named machine"`

	Out      string `flag:"out" kind:"path" help:"directory for the run's files" unset:"out/RUN-ID, with out/latest pointing to it"`
	Progress string `flag:"progress" default:"auto" enum:"auto,plain,none" help:"how progress is shown; auto redraws on a terminal and prints plain lines elsewhere"`

	TimeoutConnect    time.Duration `flag:"timeout-connect" default:"10s" help:"longest wait for a connection, TLS included; a server on any network that answers at all does so well within it"`
	TimeoutFirstByte  time.Duration `flag:"timeout-first-byte" default:"10m" help:"longest wait from dispatch to the first byte of the body; some servers send nothing before a long prompt has been read, which takes minutes on slow machines"`
	TimeoutFirstToken time.Duration `flag:"timeout-first-token" default:"10m" help:"longest wait from dispatch to the first token; servers that send headers and keep-alive comments at once are held to this one while they read the prompt"`
	TimeoutIdle       time.Duration `flag:"timeout-idle" default:"6m" help:"longest pause in the body once its first byte came; until the first token any byte ends a pause, as some servers are silent for five minutes while they read a prompt; afterwards only a complete data event does, so a stalled server cannot hide behind comments"`
	TimeoutTotal      time.Duration `flag:"timeout-total" default:"30m" help:"longest time for one request as a whole; a shorter one also shortens the other time-outs that are left at their default"`
	MaxBody           int64         `flag:"max-body" kind:"bytes" default:"64MiB" help:"most bytes of one reply that are kept; a longer reply ends as an error"`

	Quantization      string   `flag:"quantization" help:"declared: quantization of the model, such as IQ3_S" unset:"not declared"`
	ModelRevision     string   `flag:"model-revision" help:"declared: revision of the model's published files" unset:"not declared"`
	SourceRevision    string   `flag:"source-revision" help:"declared: revision of the original weights that the files were made from" unset:"not declared"`
	TokenizerRevision string   `flag:"tokenizer-revision" help:"declared: revision of the tokenizer" unset:"not declared"`
	CustomPack        string   `flag:"custom-pack" help:"declared: what was packed or converted in a way of its own, and how" unset:"not declared"`
	BuildOptions      string   `flag:"build-options" help:"declared: options that the engine was built with" unset:"not declared"`
	Background        string   `flag:"background" help:"declared: what else ran on the machine" unset:"not declared"`
	Track             string   `flag:"track" help:"declared: the comparison that this run belongs to" unset:"not declared"`
	TrackNotes        string   `flag:"track-notes" help:"declared: notes on the track" unset:"not declared"`
	ModelFile         []string `flag:"model-file" kind:"path" help:"model file on this machine to identify by its SHA-256; may be given several times" unset:"the file that the server names, where it is on this machine"`
	SkipModelHash     bool     `flag:"skip-model-hash" default:"false" help:"do not read model files; the result then cannot say which weights were measured"`

	Capacity CapacitySettings

	base    string
	origins map[string]origin
}

// Source says where a setting's value came from.
type Source string

// The sources, by falling precedence.
const (
	FromFlag        Source = "flag"
	FromEnvironment Source = "environment"
	FromFile        Source = "file"
	FromDefault     Source = "default"
)

// origin is where a value came from and how it was written there.
type origin struct {
	source Source
	where  string   // for people: `environment`, `file "x.yaml" line 3`
	texts  []string // as given, one per list entry
}

// From says where the value of the setting with this flag name came from.
func (s *Settings) From(flag string) Source {
	if o, ok := s.origins[flag]; ok {
		return o.source
	}
	return FromDefault
}

// OutDir is the directory for the files of the run with this id.
func (s *Settings) OutDir(runID string) string {
	if s.Out != "" {
		return s.Out
	}
	return filepath.Join(s.base, "out", runID)
}

// LatestLink is the symbolic link that points to the directory of the latest run.
func (s *Settings) LatestLink() string { return filepath.Join(s.base, "out", "latest") }
