// Package session is one run: it has the engine, sends the plan's requests one by one or together, keeps the record
// and writes the documents at the end. It does not import Ginkgo, and prints only through its Progress.
package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/client"
	"plumbline/harness/engine"
	"plumbline/harness/facts"
	"plumbline/harness/journal"
	"plumbline/harness/measure"
	"plumbline/harness/plan"
	"plumbline/harness/settings"
)

// Session is one run. Make it with New, Open it once the run begins, Close it at the end.
type Session struct {
	settings *settings.Settings
	command  string
	pack     *corpus.Pack
	profile  *corpus.Profile

	requests []plan.Request // the standard plan; the concurrency stage is added by Open
	byID     map[string]*plan.Request

	started time.Time // the run's epoch, with its monotonic reading
	header  fixtures.Header
	dir     string

	engine   engine.Engine
	key      settings.Secret
	auth     http.Header // what authorizes a request
	client   *client.Client
	journal  *journal.Journal
	gauge    gauge // of the standard protocol's phases
	progress *Progress

	asked fixtures.CapacityRun // of the capacity protocol, as far as it was planned
	load  *loadRun             // of the capacity protocol, once it was prepared
	after *fixtures.After      // what the engine told between the standard requests and the load; null without both

	figures map[string]measure.Figures // of the requests that were sent
	broken  error                      // the first failure to keep the record: nothing may be sent after it
	cut     bool                       // a request was cut off because the run was told to end
	before  string                     // what out/latest pointed to, "" for nothing
	misused bool                       // the settings ask for what this server cannot do
	opened  bool
	closing sync.Once
	closed  error // what closing came to
}

// New loads what a run is made of and plans its required requests. It opens no connection and writes nothing, so that
// the specs can be named before the run begins. Progress is written to out.
func New(s *settings.Settings, command string, out io.Writer) (*Session, error) {
	pack, err := openPack(s.Corpus)
	if err != nil {
		return nil, err
	}
	profile, err := corpus.LoadProfile(s.Profile)
	if err != nil {
		return nil, err
	}
	for i, file := range s.Replay {
		if real, err := filepath.EvalSymlinks(file); err == nil {
			s.Replay[i] = real // out/latest will point to this run
		}
	}
	run := &Session{
		settings: s, command: command, pack: pack, profile: profile,
		figures:  map[string]measure.Figures{},
		progress: NewProgress(out, s.Progress),
	}
	if !run.runs(standardProtocol) {
		return run, nil
	}
	// The model's name is known only once the engine has been asked; ids, budgets and answers do not depend on it.
	run.requests, err = plan.Standard(pack, plan.Asker{Profile: profile, Model: s.Model})
	return run, err
}

// The protocols that a run can have.
const (
	standardProtocol = "standard"
	capacityProtocol = "capacity"
)

// runs says whether a protocol was asked for.
func (s *Session) runs(protocol string) bool { return slices.Contains(s.settings.Protocols, protocol) }

func openPack(dir string) (*corpus.Pack, error) {
	if dir == "" {
		return corpus.Default()
	}
	return corpus.Open(dir)
}

// Requests returns the planned requests of a phase in order; for the concurrency phase only after Open.
func (s *Session) Requests(phase string) []plan.Request {
	var of []plan.Request
	for _, r := range s.requests {
		if r.Phase == phase {
			of = append(of, r)
		}
	}
	return of
}

// Plan is the plan as the record keeps it; whole only after Open.
func (s *Session) Plan() []fixtures.Planned { return s.header.Plan }

// Settings are the run's settings.
func (s *Session) Settings() *settings.Settings { return s.settings }

// ServerCapacity is how many requests the server serves at once; false when nobody said.
func (s *Session) ServerCapacity() (int, bool) {
	if s.header.ServerCapacity == nil {
		return 0, false
	}
	return *s.header.ServerCapacity, true
}

// Open begins the run: it makes the run's folder, has the engine, asks it what it is, and writes the record's first
// line. When no request can be sent (no server, wrong key, unknown model) the error says why, and the record says it
// too, so that Close still writes a document in which every request is skipped with that reason.
func (s *Session) Open(ctx context.Context) error {
	s.started = time.Now()
	s.header = fixtures.Header{
		Format: fixtures.RunFormat, RunID: runID(s.started), StartedAt: s.started.UTC().Truncate(time.Second),
		Command:       s.command,
		RunnerVersion: Version(), RunnerCommit: Commit(ctx),
		Protocol: fixtures.Protocol{
			ID: s.pack.ID, Profile: s.profile.Name, CorpusSHA256: s.pack.ManifestSHA256, BuiltIn: s.pack.BuiltIn,
		},
		Profile:          fixtures.Profile{Sampling: s.profile.Sampling, ChatTemplateKwargs: s.profile.ChatTemplateKwargs},
		Declared:         s.settings.Declared(),
		ConcurrencyStage: s.settings.ConcurrencyStage,
		ClockResolution:  facts.ClockResolution(),
	}
	if !s.profile.BuiltIn {
		s.header.Profile.Overridden = []string{"profile"}
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	refusal := s.prepare(ctx)
	if refusal != nil {
		s.header.Refusal = brief(refusal)
		_, s.misused = errors.AsType[*MisuseError](refusal)
	}
	if refusal != nil && !s.runs(standardProtocol) {
		s.withdraw()
		return refusal // nothing was sent, and a load has no document of nothing
	}
	for _, r := range s.requests {
		s.header.Plan = append(s.header.Plan, r.Planned)
	}
	if err := s.writeArtifacts(); err != nil {
		return errors.Join(refusal, err)
	}
	if s.runs(standardProtocol) {
		var err error
		if s.journal, err = journal.Create(s.dir, journal.FileName, &s.header); err != nil {
			return errors.Join(refusal, err)
		}
		s.gauge = gauge{s: s, record: s.journal}
	}
	s.opened = true
	s.progress.begin(s)
	return refusal
}

// prepare has the engine and completes the header and the plan with what it tells.
func (s *Session) prepare(ctx context.Context) error {
	key, err := s.settings.Credential()
	if err != nil {
		return err
	}
	s.auth = engine.Authorize(key)
	s.header.APIKeySent = !key.Empty()
	s.header.Engine.Kind, s.header.Engine.URL = engine.Kind(s.settings), s.settings.URL
	s.engine, err = engine.Start(ctx, s.settings, engine.Run{ID: s.header.RunID, Dir: s.dir, Pack: s.pack})
	if err != nil {
		return err
	}
	if s.header.Engine, err = engine.Describe(ctx, s.engine, s.auth, engine.OptionsFor(s.settings)); err != nil {
		return err
	}
	if s.header.Model, err = engine.ResolveModel(s.header.Engine, s.settings.Model); err != nil {
		return err
	}
	s.header.ServerCapacity = s.header.Engine.Capacity
	if n := s.settings.ServerCapacity; n > 0 {
		s.header.ServerCapacity = &n
	}
	if err := s.planRequests(ctx); err != nil {
		return err
	}
	if s.runs(capacityProtocol) {
		if s.asked, err = s.askedOfLoad(); err != nil {
			return &MisuseError{err}
		}
	}
	cache, err := facts.DigestCachePath()
	if err != nil {
		cache = "" // files are then read anew
	}
	s.header.Host = facts.Host(ctx, facts.Options{
		EngineURL: s.engine.URL(), ModelFiles: s.settings.ModelFile, ModelPath: s.header.Engine.ModelPath,
		SkipModelHash: s.settings.SkipModelHash, DigestCache: cache, Progress: s.progress.hashing,
	})
	s.key = key
	s.client, err = s.newClient(s.timeouts())
	return err
}

func (s *Session) timeouts() client.Timeouts {
	return client.Timeouts{
		Connect: s.settings.TimeoutConnect, FirstByte: s.settings.TimeoutFirstByte,
		FirstToken: s.settings.TimeoutFirstToken, Idle: s.settings.TimeoutIdle, Total: s.settings.TimeoutTotal,
	}
}

func (s *Session) newClient(t client.Timeouts) (*client.Client, error) {
	return client.New(client.Options{
		BaseURL: s.engine.URL(), Header: s.auth, Secrets: []string{s.key.Reveal()}, Epoch: s.started,
		MaxBody: s.settings.MaxBody, Proxy: s.settings.Proxy, HTTP2: s.settings.HTTP2, Timeouts: t,
	})
}

// brief is an error in one line: it stands in the document once for each request that was not sent. The end of an engine's
// log, which the whole of it may hold, is in the run's folder.
func brief(err error) string {
	if e, ok := errors.AsType[*engine.StartError](err); ok {
		return e.Brief()
	}
	return err.Error()
}

// planRequests plans again with the model's name, adds the concurrency stage, and lets the engine count the prompts
// with its own tokenizer where it offers one.
func (s *Session) planRequests(ctx context.Context) error {
	if !s.runs(standardProtocol) {
		return nil
	}
	asker := plan.Asker{Profile: s.profile, Model: s.header.Model}
	requests, err := plan.Standard(s.pack, asker)
	if err != nil {
		return err
	}
	if s.settings.ConcurrencyStage && s.header.ServerCapacity != nil {
		more, err := plan.Concurrency(asker, *s.header.ServerCapacity, s.header.RunID)
		if err != nil {
			return err
		}
		requests = append(requests, more...)
	}
	s.requests = requests
	s.byID = make(map[string]*plan.Request, len(requests))
	for i := range s.requests {
		s.byID[s.requests[i].ID] = &s.requests[i]
	}
	if !s.header.Engine.CanTokenize {
		return nil
	}
	texts := make([]string, len(s.requests))
	for i, r := range s.requests {
		texts[i] = r.Text
	}
	counts, err := engine.CountTokens(ctx, s.engine.URL(), s.auth, texts, engine.OptionsFor(s.settings))
	if err != nil {
		s.header.Engine.CanTokenize = false // it only serves a check, which then says that it could not be made
		return nil
	}
	for i := range s.requests {
		s.requests[i].EngineContentTokens = &counts[i]
	}
	return nil
}

func runID(at time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// MisuseError says that the settings ask for what cannot be done with this server.
type MisuseError struct{ error }

// Misused says whether the run was refused for its settings, so that nothing was sent.
func (s *Session) Misused() bool { return s.misused }

// withdraw removes the run's folder again, if nothing is in it.
func (s *Session) withdraw() {
	if os.Remove(s.dir) != nil || s.settings.Out != "" {
		return // something is in it, such as an engine's log; or the place was not ours to choose
	}
	if s.before != "" {
		_ = renameio.Symlink(s.before, s.settings.LatestLink())
	} else {
		_ = os.Remove(s.settings.LatestLink())
	}
	os.Remove(filepath.Dir(s.dir)) // only when it is empty
}

func (s *Session) makeDir() error {
	s.dir = s.settings.OutDir(s.header.RunID)
	for _, record := range []string{journal.FileName, journal.CapacityFile} {
		if _, err := os.Stat(filepath.Join(s.dir, record)); err == nil {
			return fmt.Errorf("make the run's folder: %q holds the record of another run already: choose another --out, or remove it", s.dir)
		}
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return fmt.Errorf("make the run's folder: %w", err)
	}
	if s.settings.Out != "" {
		return nil // the operator chose the place: nothing beside it is touched
	}
	s.before, _ = os.Readlink(s.settings.LatestLink())
	if err := renameio.Symlink(s.header.RunID, s.settings.LatestLink()); err != nil {
		return fmt.Errorf("point to the newest run: %w", err)
	}
	return nil
}

// writeArtifacts writes the files beside the record and lists them in the header.
func (s *Session) writeArtifacts() error {
	files := []struct {
		kind, path string
		data       []byte
	}{
		{"config", "config.json", s.settings.Redacted()},
		{"provenance", "provenance/chat_template.jinja", []byte(s.header.Engine.ChatTemplate)},
		{"provenance", "provenance/corpus-manifest.sha256", s.pack.Manifest},
		{"provenance", "provenance/corpus-build.json", s.pack.BuildRecord},
	}
	for _, f := range files {
		if len(f.data) == 0 {
			continue // an engine that does not tell its template
		}
		a, err := journal.WriteFile(s.dir, f.path, f.data)
		if err != nil {
			return err
		}
		a.Kind = f.kind
		s.header.Artifacts = append(s.header.Artifacts, a)
	}
	return nil
}
