package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumbline/fixtures"
)

// CapacitySettings is what the capacity protocol was asked to do. The tags are those of Settings.
type CapacitySettings struct {
	Requests    int `flag:"capacity-requests" default:"60" min:"1" max:"100000" help:"capacity: requests of the closed loop"`
	Concurrency int `flag:"capacity-concurrency" default:"20" min:"1" max:"4096" help:"capacity: requests in flight of the closed loop"`
	Burst       int `flag:"capacity-burst" default:"0" min:"0" max:"256" help:"capacity: send so many requests all at once, in place of capacity-requests and capacity-concurrency; 0 for none"`
	CtxTokens   int `flag:"capacity-ctx-tokens" default:"0" min:"0" max:"67108864" help:"capacity: size of every prompt in tokens, at least 32; 0 draws sizes from 16,000 to 262,144"`

	SharedPrefixTokens int    `flag:"capacity-shared-prefix-tokens" default:"8000" min:"0" max:"1048576" help:"capacity: estimated length of the beginning that all prompts share; none in unique mode"`
	PromptCacheMode    string `flag:"capacity-prompt-cache-mode" default:"shared" enum:"shared,unique" help:"capacity: whether prompts share their beginning, or no two have one in common"`
	Seed               int64  `flag:"capacity-seed" default:"0" min:"0" max:"9007199254740991" help:"capacity: seed of the sizes, the arrivals and the canary markers"`
	MaxTokens          int    `flag:"capacity-max-tokens" default:"64" min:"1" max:"65536" help:"capacity: most tokens of a reply; at least 16 with canaries"`
	ResponseWords      int    `flag:"capacity-response-words" default:"0" min:"0" max:"65536" help:"capacity: ask for exactly so many repetitions of a word; 0 asks for a summary"`
	RequestCanaries    bool   `flag:"capacity-request-canaries" default:"false" help:"capacity: every reply must begin with a marker of its own and hold no other's"`
	OutputPolicy       string `flag:"capacity-controlled-output-policy" default:"observe" enum:"observe,strict" help:"capacity: whether a reply without exactly capacity-response-words words fails"`
	MaxModelLen        int    `flag:"capacity-max-model-len" default:"0" min:"0" max:"67108864" help:"capacity: context window in tokens; 0 asks the server"`
	Margin             int    `flag:"capacity-margin" default:"1024" min:"0" max:"1048576" help:"capacity: tokens of the window that are kept free beside prompt and reply"`
	Calibrate          bool   `flag:"capacity-calibrate" default:"true" help:"capacity: send two small requests first to learn how many characters make a token; without it 3 are assumed"`

	ThinkingMode    string   `flag:"capacity-thinking-mode" default:"default" enum:"default,enabled,disabled,unsupported" help:"capacity: what requests say of thinking; default and unsupported say nothing"`
	ReasoningEffort string   `flag:"capacity-reasoning-effort" help:"capacity: reasoning_effort to send, in place of a thinking mode" unset:"not sent"`
	Temperature     *float64 `flag:"capacity-temperature" min:"0" max:"2" help:"capacity: temperature to send" unset:"not sent"`
	TopP            *float64 `flag:"capacity-top-p" min:"0" max:"1" help:"capacity: top_p to send" unset:"not sent"`

	ClockDomainID            string        `flag:"capacity-clock-domain-id" help:"capacity: name of the clock; only documents with equal names may have their times aligned" unset:"null"`
	ConfigurationFingerprint string        `flag:"capacity-configuration-fingerprint" help:"capacity: sha256: and 64 hex digits that identify the configuration measured" unset:"computed from the settings and what the engine tells"`
	Timeout                  time.Duration `flag:"capacity-timeout" default:"15m" help:"capacity: longest time for one request as a whole; the idle limit is timeout-idle, which keep-alives do not extend"`

	AbortErrorRate float64 `flag:"capacity-abort-error-rate" default:"0.5" min:"0" max:"1" help:"capacity: stop sending once more than this share of at least 20 finished requests failed; 0 never stops"`
	Arrival        string  `flag:"capacity-arrival" default:"closed" enum:"closed,constant,poisson" help:"capacity: constant and poisson add an open loop after the closed one, with latency counted from the scheduled time"`
	Rate           float64 `flag:"capacity-rate" default:"0" min:"0" max:"10000" help:"capacity: requests a second of the open loop"`
	OpenRequests   int     `flag:"capacity-open-requests" default:"60" min:"1" max:"100000" help:"capacity: requests of the open loop"`
	Sweep          []int   `flag:"capacity-sweep" min:"1" max:"4096" help:"capacity: concurrency levels to try after that, such as 1,2,4,8, to find the knee" unset:"no sweep"`
	SweepRequests  int     `flag:"capacity-sweep-requests" default:"20" min:"1" max:"100000" help:"capacity: requests of each level of the sweep, at least the highest level; by default at least twice that"`
	DryRun         bool    `flag:"capacity-dry-run" default:"false" help:"capacity: print the plan as JSON and send nothing"`

	SLO []string `flag:"slo" help:"objective that goodput counts, such as ttft=2s,tpot=60ms; figures: ttft, tpot, e2e" unset:"no goodput"`
}

// sloFigures are the figures that an objective may bound.
var sloFigures = []string{"ttft", "tpot", "e2e"}

var (
	clockDomain = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	fingerprint = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	effort      = regexp.MustCompile(`^[a-z]{1,32}$`)
)

const (
	smallestPrompt   = 32 // tokens
	canaryMaxTokens  = 16 // a marker takes up to a dozen tokens
	capacityProtocol = "capacity"
)

// checkCapacity holds the capacity settings against their meaning and against each other.
func (s *Settings) checkCapacity(bad func(flag, format string, args ...any)) {
	c := &s.Capacity
	if !slices.Contains(s.Protocols, capacityProtocol) {
		for _, f := range fields {
			if len(f.index) > 1 && s.From(f.flag) == FromFlag {
				bad(f.flag, "it has no effect without --protocols %s", capacityProtocol)
			}
		}
		return
	}
	if 0 < c.CtxTokens && c.CtxTokens < smallestPrompt {
		bad("capacity-ctx-tokens", "want 0, or at least %d", smallestPrompt)
	}
	if c.Burst > 0 && c.PromptCacheMode == "unique" {
		bad("capacity-burst", "it contradicts capacity-prompt-cache-mode \"unique\": a burst shares its beginning; want 0, or the mode \"shared\"")
	}
	if c.RequestCanaries && c.MaxTokens < canaryMaxTokens {
		bad("capacity-max-tokens", "want at least %d with capacity-request-canaries, for the marker's sake", canaryMaxTokens)
	}
	if c.OutputPolicy == "strict" && c.ResponseWords == 0 {
		bad("capacity-controlled-output-policy", "\"strict\" counts words: want capacity-response-words above 0 with it")
	}
	if c.ReasoningEffort != "" && s.From("capacity-thinking-mode") != FromDefault {
		bad("capacity-reasoning-effort", "it contradicts %s: leave one of them out", s.cite("capacity-thinking-mode"))
	}
	for _, text := range []struct {
		flag, value string
		form        *regexp.Regexp
		want        string
	}{
		{"capacity-reasoning-effort", c.ReasoningEffort, effort, "a word in small letters, such as low, medium or high"},
		{"capacity-clock-domain-id", c.ClockDomainID, clockDomain, "1 to 64 of letters, digits, dot, underscore and hyphen"},
		{"capacity-configuration-fingerprint", c.ConfigurationFingerprint, fingerprint, "sha256: and 64 hex digits in small letters"},
	} {
		if text.value != "" && !text.form.MatchString(text.value) {
			bad(text.flag, "want %s", text.want)
		}
	}
	switch open := c.Arrival != "closed"; {
	case open && c.Rate == 0:
		bad("capacity-arrival", "an open loop needs capacity-rate above 0, in requests a second")
	case !open && s.From("capacity-rate") != FromDefault:
		bad("capacity-rate", "it has no effect without capacity-arrival constant or poisson")
	}
	if s.From("capacity-sweep-requests") == FromDefault && len(c.Sweep) > 0 {
		c.SweepRequests = max(c.SweepRequests, 2*slices.Max(c.Sweep))
	} else if len(c.Sweep) > 0 && c.SweepRequests < slices.Max(c.Sweep) {
		bad("capacity-sweep-requests", "want at least as many as the highest level of capacity-sweep, %d", slices.Max(c.Sweep))
	}
	if _, problem := c.objectives(); problem != "" {
		bad("slo", "%s", problem)
	}
}

// objectives reads the objective, or says what is wrong with it.
func (c *CapacitySettings) objectives() ([]fixtures.Objective, string) {
	want := "want figure=time, such as ttft=2s,tpot=60ms; figures: " + strings.Join(sloFigures, ", ")
	var all []fixtures.Objective
	for _, text := range c.SLO {
		figure, limit, _ := strings.Cut(text, "=")
		d, err := time.ParseDuration(limit)
		if err != nil || d <= 0 || !slices.Contains(sloFigures, figure) {
			return nil, fmt.Sprintf("%s: %s", strconv.Quote(text), want)
		}
		if slices.ContainsFunc(all, func(o fixtures.Objective) bool { return o.Figure == figure }) {
			return nil, fmt.Sprintf("%q is bounded twice", figure)
		}
		all = append(all, fixtures.Objective{Figure: figure, Limit: d})
	}
	return all, ""
}

// CapacityRun is what the capacity protocol was asked to do, for the run's record. The window that the server tells,
// where none was set, and the calibration are still to be filled in.
func (s *Settings) CapacityRun() fixtures.CapacityRun {
	c := &s.Capacity
	slo, _ := c.objectives() // checked when the settings were read
	run := fixtures.CapacityRun{
		Requests: c.Requests, Concurrency: c.Concurrency, Burst: c.Burst, CtxTokens: c.CtxTokens,
		SharedPrefixTokens: c.SharedPrefixTokens, PromptCacheMode: c.PromptCacheMode, Seed: c.Seed,
		MaxTokens: c.MaxTokens, ResponseWords: c.ResponseWords, RequestCanaries: c.RequestCanaries,
		ControlledOutputPolicy: c.OutputPolicy, MaxModelLen: c.MaxModelLen, Margin: c.Margin,
		ThinkingMode: c.ThinkingMode, ReasoningEffort: c.ReasoningEffort, Temperature: c.Temperature, TopP: c.TopP,
		ClockDomainID: c.ClockDomainID, ConfigurationFingerprint: c.ConfigurationFingerprint, Timeout: c.Timeout,
		AbortErrorRate: c.AbortErrorRate, Rate: c.Rate, Sweep: slices.Sorted(slices.Values(c.Sweep)), SLO: slo,
	}
	if c.MaxModelLen > 0 {
		run.MaxModelLenSource = "setting"
	}
	if c.Burst > 0 {
		run.Requests, run.Concurrency = c.Burst, c.Burst
	}
	if c.PromptCacheMode == "unique" {
		run.SharedPrefixTokens = 0
	}
	if c.Arrival != "closed" {
		run.Arrival, run.OpenRequests = c.Arrival, c.OpenRequests
	}
	if len(c.Sweep) > 0 {
		run.SweepRequests = c.SweepRequests
	}
	return run
}
