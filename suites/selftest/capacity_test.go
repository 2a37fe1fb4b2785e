package selftest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/corpus"
	"plumbline/fixtures"
	"plumbline/harness/journal"
	"plumbline/harness/plan"
	"plumbline/harness/transcript"
	"plumbline/mockserver"
	"plumbline/reports/capacity"
	"plumbline/suites/session"
)

// smallLoad asks for a load that takes less than a second.
var smallLoad = []string{"--protocols", "capacity", "--capacity-ctx-tokens", "512", "--capacity-requests", "60",
	"--capacity-concurrency", "8", "--ginkgo.no-color"}

// strictLoad asks for all that a reply can be held to.
var strictLoad = slices.Concat(smallLoad, []string{"--capacity-request-canaries", "--capacity-response-words", "10",
	"--capacity-controlled-output-policy", "strict"})

// with is a list of arguments and more of them; a later flag counts.
func with(args []string, more ...string) []string { return slices.Concat(args, more) }

// ofTime are the findings that a client which shares its machine with other tests may have of a correct reply.
var ofTime = []string{transcript.TimingsImplausible, transcript.QueueWait, transcript.InterTokenStall, transcript.StreamBuffered,
	transcript.TimingsDoNotCoverWallClock}

// received are the bodies of the chat requests that a server received, with how often each came.
type received struct {
	mu     sync.Mutex
	bodies map[string]int
	other  int // requests that were none for a chat
}

// note takes in a request; its body can still be read.
func (s *received) note(r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != plan.ChatPath {
		s.other++
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if s.bodies == nil {
		s.bodies = map[string]int{}
	}
	s.bodies[string(body)]++
	return nil
}

// times is how many chat requests came, and how often the one that came most often.
func (s *received) times() (all, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.bodies {
		all, most = all+n, max(most, n)
	}
	return all, most
}

// loadServer serves a mock with as many slots as a small load has workers, and notes what it receives. What answers a
// chat request, when it is not nil, stands in for the mock.
func loadServer(t *testing.T, o mockserver.Options, chat func(http.ResponseWriter, *http.Request, http.Handler)) (string, *received) {
	t.Helper()
	if o.Slots == 0 {
		o.Slots = 8
	}
	mock, err := mockserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	log := &received{}
	if chat == nil {
		chat = func(w http.ResponseWriter, r *http.Request, mock http.Handler) { mock.ServeHTTP(w, r) }
	}
	noted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if log.note(r) == nil { // else the client has left
			mock.Handler().ServeHTTP(w, r)
		}
	})
	return serve(t, noted, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if log.note(r) == nil {
			chat(w, r, mock.Handler())
		}
	}), log
}

// loadDocument is a capacity document with what this program adds to the format.
type loadDocument struct {
	*capacity.Document
	data []byte
	ours gjson.Result
}

// capacityDocument reads and validates the run's capacity document.
func (r result) capacityDocument(t *testing.T) loadDocument {
	t.Helper()
	return readCapacity(t, r.runDir(), r.output)
}

func readCapacity(t *testing.T, dir, output string) loadDocument {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, session.CapacityName))
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, problem := range capacity.Validate(data) {
		t.Errorf("the document is not valid: %v", problem)
	}
	doc, err := capacity.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return loadDocument{doc, data, gjson.GetBytes(data, "extensions.plumbline")}
}

// metric is a metric's number, and fails the test where it has none.
func (d loadDocument) metric(t *testing.T, name string) float64 {
	t.Helper()
	v, ok := d.Metric(name)
	if !ok {
		t.Errorf("the metric %q is null", name)
	}
	return v
}

// rows are the rows of a run's record, in the order of their writing.
func rows(t *testing.T, dir string) []fixtures.Row {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, journal.CapacityFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []fixtures.Row
	for r := fixtures.NewLineReader(f); ; {
		line, err := r.Next()
		if err != nil {
			return all
		}
		if line.Row != nil {
			all = append(all, *line.Row)
		}
	}
}

var failedSpec = regexp.MustCompile(`(?m)^\s*\[FAIL\] .* \[It\] capacity-([a-z]+) `)

// red are the capacity specs that failed, by name. That this program was late is left out where the document says so too:
// tests share their machine.
func (r result) red(t *testing.T) []string {
	t.Helper()
	late := r.capacityDocument(t).ours.Get("client.client_overloaded").Bool()
	names := []string{}
	for _, m := range failedSpec.FindAllStringSubmatch(r.output, -1) {
		if m[1] != "client" || !late {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	if red := len(names) > 0 || late; red != (r.exit != 0) || r.exit > 1 {
		t.Errorf("exit code %d with the red specs %v\n%s", r.exit, names, r.output)
	}
	return slices.Compact(names)
}

func TestALoadOnTheMockIsGreenAndItsRecordIsWhole(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	url, log := loadServer(t, mockserver.Options{}, nil)
	r := run(t, nil, with(strictLoad, "--url", url)...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	g.Expect(r.output).To(And(ContainSubstring("Ran 8 of 8 Specs"), ContainSubstring("0 Skipped"),
		ContainSubstring("not a result about any engine")))

	doc := r.capacityDocument(t)
	g.Expect([]int64{*doc.Requests, *doc.Completed, *doc.Failed, *doc.ResponsesReceived}).To(Equal([]int64{60, 60, 0, 60}))
	g.Expect(*doc.PerformanceEligible).To(BeTrue())
	g.Expect(doc.metric(t, "ttft_samples")).To(BeEquivalentTo(60))
	g.Expect(doc.metric(t, "request_canary_passed")).To(BeEquivalentTo(60))
	g.Expect(doc.metric(t, "controlled_output_exact_adherence")).To(BeEquivalentTo(60))
	for id := range doc.ours.Get("findings").Map() {
		g.Expect(id).To(BeElementOf(ofTime), "on a correct reply")
	}
	g.Expect(doc.ours.Get("sizing.calibration.source").String()).To(Equal("usage"))
	g.Expect(doc.ours.Get("sizing.measured_to_planned.mean").Float()).To(BeNumerically("~", 1, 0.03))

	g.Expect(os.Remove(filepath.Join(r.runDir(), session.CapacityName))).To(Succeed())
	_, err := session.ReportCapacity(r.runDir())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(doc.data, r.capacityDocument(t).data)).To(BeTrue(), "the rebuilt document differs")

	load, err := journal.OpenLoad(r.runDir())
	g.Expect(err).NotTo(HaveOccurred())
	defer load.Close()
	pack, err := corpus.Default()
	g.Expect(err).NotTo(HaveOccurred())
	planned, err := plan.Capacity(*load.Header.Capacity, load.Header.Model, pack)
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[string]bool{}
	g.Expect(journal.Unread(r.runDir(), nil, func(x *fixtures.Exchange) error {
		stage, index, ok := fixtures.ParseLoadID(x.ID)
		g.Expect(ok).To(BeTrue(), x.ID)
		body := planned.Body(stage, index)
		sum := sha256.Sum256(body)
		g.Expect(x.Request.BodySHA256).To(Equal(hex.EncodeToString(sum[:])), x.ID)
		g.Expect(x.Request.Body).To(BeEmpty())
		g.Expect(log.bodies[string(body)]).To(Equal(1), "the server received another body than the plan makes for %s", x.ID)
		seen[x.ID] = true
		return nil
	})).To(Succeed())
	g.Expect(seen).To(HaveLen(60))
	all, most := log.times()
	g.Expect([]int{all, most}).To(Equal([]int{62, 1}), "sixty, and two that calibrate")
}

func TestSmallPromptsOfAnySeedHaveTheirSize(t *testing.T) {
	for _, seed := range []string{"0", "1", "2", "3"} {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			r := run(t, nil, with(strictLoad, "--capacity-ctx-tokens", "256", "--capacity-seed", seed, "--capacity-requests", "20")...)
			NewWithT(t).Expect(r.red(t)).To(BeEmpty(), r.output)
		})
	}
}

func TestPromptsThatAServerCutsAreRed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	url, _ := loadServer(t, mockserver.Options{}, func(w http.ResponseWriter, r *http.Request, mock http.Handler) {
		if asked.Add(1) <= 2 { // they calibrate
			mock.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(roleChunk)+chunk(`{"content":"a"}`)+finishes+usage(`{"prompt_tokens":450,"completion_tokens":1,"total_tokens":451}`)+done)
	})
	r := run(t, nil, with(smallLoad, "--url", url)...)
	NewWithT(t).Expect(r.red(t)).To(Equal([]string{"size"}), r.output)
}

func TestUsageDetailsOfAnyKindCostNothing(t *testing.T) {
	for defect, hits := range map[string]struct {
		known bool
		least float64
	}{
		"usage-details-list": {}, "usage-details-string": {}, "usage-details-null": {}, "cached": {known: true, least: 0.95},
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			url, _ := loadServer(t, mockserver.Options{Defects: []mockserver.Defect{{Name: defect, Share: 1}}}, nil)
			r := run(t, nil, with(smallLoad, "--url", url)...)
			g.Expect(r.red(t)).To(BeEmpty(), r.output)
			doc := r.capacityDocument(t)
			g.Expect(*doc.Completed).To(BeEquivalentTo(60))
			g.Expect(doc.metric(t, "prompt_token_samples")).To(BeEquivalentTo(60))
			g.Expect(doc.metric(t, "completion_tokens_samples")).To(BeEquivalentTo(60))
			share, known := doc.Metric("prefix_cache_hit_avg")
			g.Expect(known).To(Equal(hits.known))
			g.Expect(share).To(BeNumerically(">=", hits.least))
		})
	}
}

func TestARoleIsNoFirstToken(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	url, _ := loadServer(t, mockserver.Options{Defects: []mockserver.Defect{{Name: "role-only", Share: 1}}}, nil)
	r := run(t, nil, with(smallLoad, "--url", url, "--capacity-requests", "8", "--capacity-calibrate=false")...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	doc := r.capacityDocument(t)
	for _, name := range []string{"ttft_min_ms", "time_to_first_output_min_ms"} {
		g.Expect(doc.metric(t, name)).To(BeNumerically(">=", 1000), name)
	}
}

func TestRefusedLoadSettingsEndWithTwoAndWriteNothing(t *testing.T) {
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--capacity-requests", "0"}, []string{"capacity-requests", "0"}},
		{[]string{"--capacity-concurrency", "5000"}, []string{"capacity-concurrency", "5000", "4096"}},
		{[]string{"--capacity-ctx-tokens", "16"}, []string{"capacity-ctx-tokens", "16", "32"}},
		{[]string{"--capacity-request-canaries", "--capacity-max-tokens", "15"}, []string{"capacity-max-tokens", "15", "16"}},
		{[]string{"--capacity-prompt-cache-mode", "warm"}, []string{"capacity-prompt-cache-mode", "warm", "unique"}},
		{[]string{"--capacity-controlled-output-policy", "strict"}, []string{"capacity-controlled-output-policy", "strict", "capacity-response-words"}},
		{[]string{"--capacity-burst", "4", "--capacity-prompt-cache-mode", "unique"}, []string{"capacity-burst", "4", "unique"}},
		{[]string{"--capacity-arrival", "poisson"}, []string{"capacity-arrival", "poisson", "capacity-rate"}},
		{[]string{"--capacity-rate", "5"}, []string{"capacity-rate", "5", "capacity-arrival"}},
		{[]string{"--capacity-max-model-len", "131072", "--capacity-ctx-tokens", "64", "--capacity-requests", "60000", "--capacity-sweep", "1,2", "--capacity-sweep-requests", "60000"},
			[]string{"capacity-sweep-requests", "60000", "100000"}},
		{[]string{"--capacity-abort-error-rate", "1.5"}, []string{"capacity-abort-error-rate", "1.5"}},
		{[]string{"--capacity-max-model-len", "1000"}, []string{"capacity-max-model-len", "1000", "capacity-margin"}},
		{[]string{"--slo", "ttft=soon"}, []string{"slo", "ttft=soon"}},
		{[]string{"--capacity-seed", "-1"}, []string{"capacity-seed", "-1"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := run(t, nil, append([]string{"--protocols", "capacity", "--url", "http://127.0.0.1:1"}, c.args...)...)
			g.Expect(r.exit).To(Equal(2), r.output)
			for _, says := range c.says {
				g.Expect(r.output).To(ContainSubstring(says))
			}
			g.Expect(filepath.Join(r.dir, "out")).NotTo(BeADirectory())
		})
	}
}

func TestALoadOfWhichNothingIsCheckedIsRed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := run(t, nil, "--protocols", "capacity", "--capacity-requests", "2", "--capacity-concurrency", "1", "--capacity-ctx-tokens", "512",
		"--ginkgo.label-filter=case:capacity-canary")
	g.Expect(r.exit).To(Equal(1), r.output)
	g.Expect(r.output).To(ContainSubstring("nothing was checked"))
}

func TestARefusedLoadLeavesTheLatestRunInItsPlace(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	dir := t.TempDir()
	before := filepath.Join(dir, "out", "before")
	g.Expect(os.MkdirAll(before, 0o777)).To(Succeed())
	g.Expect(os.Symlink("before", filepath.Join(dir, "out", "latest"))).To(Succeed())
	cmd, _ := command(t, nil, "--protocols", "capacity", "--url", "http://127.0.0.1:9")
	cmd.Dir = dir
	r := finish(t, cmd, dir)
	g.Expect(r.exit).To(Equal(1), r.output)
	g.Expect(os.Readlink(filepath.Join(dir, "out", "latest"))).To(Equal("before"))
	g.Expect(os.ReadDir(filepath.Join(dir, "out"))).To(HaveLen(2), "nothing new")
}

func TestAServerWithoutAWindowIsRedAndNamesTheFlag(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	mock, err := mockserver.Start(t.Context(), mockserver.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	var asked atomic.Int64
	windowless := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"plumbline-mock","object":"model"}]}`)
			return
		}
		http.NotFound(w, r)
	}), func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		asked.Add(1)
		mock.Handler().ServeHTTP(w, r)
	})
	r := run(t, nil, with(smallLoad, "--url", windowless)...)
	g.Expect(r.exit).To(Equal(2), r.output)
	g.Expect(r.output).To(ContainSubstring("--capacity-max-model-len"))
	g.Expect(filepath.Join(r.dir, "out")).NotTo(BeADirectory(), "nothing is written")
	g.Expect(asked.Load()).To(BeZero())

	r = run(t, nil, with(smallLoad, "--url", windowless, "--capacity-max-model-len", "8192")...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	doc := r.capacityDocument(t)
	g.Expect(*doc.MaxContextTokens).To(BeEquivalentTo(8192))
	g.Expect(doc.ours.Get("max_model_len_source").String()).To(Equal("setting"))
}

func TestADryRunPrintsItsPlanAndSendsNothing(t *testing.T) {
	url, log := loadServer(t, mockserver.Options{}, nil)
	dry := func(t *testing.T, args ...string) plan.DryPlan {
		t.Helper()
		g := NewWithT(t)
		cmd, dir := command(t, nil, slices.Concat([]string{"--protocols", "capacity", "--url", url, "--capacity-dry-run"}, args)...)
		var failures bytes.Buffer
		cmd.Stderr = &failures
		out, err := cmd.Output()
		g.Expect(err).NotTo(HaveOccurred(), failures.String())
		g.Expect(filepath.Join(dir, "out")).NotTo(BeADirectory())
		var p plan.DryPlan
		in := json.NewDecoder(bytes.NewReader(out))
		g.Expect(in.Decode(&p)).To(Succeed(), string(out))
		_, err = in.Token()
		g.Expect(err).To(MatchError(io.EOF), "more than one object: %s", out)
		return p
	}
	sizes := func(p plan.DryPlan) [][]int {
		var all [][]int
		for _, s := range p.Stages {
			all = append(all, s.PlannedContextTokens)
		}
		return all
	}
	g := NewWithT(t)
	stages := []string{"--capacity-max-model-len", "300000", "--capacity-arrival", "poisson", "--capacity-rate", "10", "--capacity-sweep", "2,4"}
	first := dry(t, with(stages, "--capacity-concurrency", "1")...)
	g.Expect(sizes(first)).To(HaveLen(4))
	g.Expect(sizes(first)[0][:4]).To(Equal([]int{65536, 65536, 32768, 32768}))
	g.Expect(first.Requests).To(Equal(60 + 60 + 20 + 20))
	g.Expect(*first.ContextCap).To(Equal(300000 - 64 - 1024))
	g.Expect(sizes(dry(t, with(stages, "--capacity-concurrency", "64")...))).To(Equal(sizes(first)))
	g.Expect(sizes(dry(t, with(stages, "--capacity-seed", "1")...))).NotTo(Equal(sizes(first)))
	all, _ := log.times()
	g.Expect(all+log.other).To(BeZero(), "requests reached the server")
}

func TestBothProtocolsLeaveADocumentEach(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := run(t, nil, with(smallLoad, "--protocols", "standard,capacity")...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	g.Expect(r.document(t).Quality.Passed).To(Equal(12))
	g.Expect(sent(r.record(t))).To(Equal(planned(t)))
	g.Expect(*r.capacityDocument(t).Completed).To(BeEquivalentTo(60))
}

func TestALoadIsSentOnceWhateverTheFlags(t *testing.T) {
	binary, err := suite()
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"parallel": {"--procs=3"}, "randomized": {"--randomize-all"}, "both": {"--procs=3", "--randomize-all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			url, log := loadServer(t, mockserver.Options{}, nil)
			dir := t.TempDir()
			own := slices.DeleteFunc(slices.Clone(smallLoad), func(arg string) bool { return strings.HasPrefix(arg, "--ginkgo.") })
			args := slices.Concat([]string{"tool", "ginkgo", "--no-color"}, flags, []string{binary, "--", "--url", url, "--out", dir}, own)
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Env = cleanEnvironment()
			out, _ := cmd.CombinedOutput()
			g.Expect(string(out)).To(ContainSubstring("8 of 8"))
			doc := readCapacity(t, dir, string(out))
			g.Expect(*doc.Completed).To(BeEquivalentTo(60))
			all, most := log.times()
			g.Expect([]int{all, most}).To(Equal([]int{62, 1}))
			if late := doc.ours.Get("client.client_overloaded").Bool(); !late {
				g.Expect(cmd.ProcessState.ExitCode()).To(BeZero(), string(out))
			}
		})
	}
}

func TestFurtherStagesAndGoodputLeaveTheMetricsAsTheyAre(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	alone := run(t, nil, smallLoad...).capacityDocument(t)
	r := run(t, nil, with(smallLoad, "--capacity-arrival", "poisson", "--capacity-rate", "200", "--capacity-open-requests", "20",
		"--capacity-sweep", "1,2,4", "--capacity-sweep-requests", "12", "--slo", "ttft=2s,tpot=60ms")...)
	g.Expect(r.red(t)).To(BeEmpty(), r.output)
	doc := r.capacityDocument(t)
	g.Expect(keys(doc)).To(Equal(keys(alone)))
	g.Expect(keys(doc)).To(HaveLen(159))
	g.Expect(doc.metric(t, "ttft_samples")).To(BeEquivalentTo(60), "the closed loop's alone")
	for path, want := range map[string]float64{
		"open_loop.results": 20, "open_loop.completed": 20, "open_loop.goodput.met": 20, "sweep.levels.#": 3,
		"sweep.levels.2.concurrency": 4, "sweep.levels.2.results": 12, "goodput.met": 60, "goodput.of": 60, "goodput.share": 1,
	} {
		g.Expect(doc.ours.Get(path).Exists()).To(BeTrue(), path)
		g.Expect(doc.ours.Get(path).Float()).To(Equal(want), path)
	}
	for _, path := range []string{"open_loop.from_schedule.ttft_ms.p95", "sweep.knee.concurrency_reason", "open_loop.dispatch_wait_ms.mean"} {
		g.Expect(doc.ours.Get(path).Exists()).To(BeTrue(), path)
	}
	for _, path := range []string{"open_loop", "sweep", "goodput"} {
		g.Expect(alone.ours.Get(path).Type).To(Equal(gjson.Null), path)
	}
}

func keys(d loadDocument) []string {
	var names []string
	for name := range d.Metrics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAKeyThatAServerEchoesReachesNoFileOfALoad(t *testing.T) {
	t.Parallel()
	const key = "sk-very-secret-0123456789"
	for name, echo := range map[string]func(w http.ResponseWriter, given string){
		"in a refusal": func(w http.ResponseWriter, given string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Seen", given)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"cannot serve `+given+`","type":"server_error"}}`)
		},
		"in a stream": func(w http.ResponseWriter, given string) {
			w.Header().Set("Content-Type", "text/event-stream")
			body := chunk(roleChunk) + chunk(`{"content":`+strconv.Quote(given)+`}`) + `data: {"error":{"message":"cannot go on for ` + given + `"}}` + "\n\n"
			at := strings.Index(body, key) + len(key)/2
			_, _ = io.WriteString(flushing{w}, body[:at]) // the key comes in two pieces
			_, _ = io.WriteString(flushing{w}, body[at:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var echoed atomic.Int64
			url, _ := loadServer(t, mockserver.Options{}, func(w http.ResponseWriter, r *http.Request, mock http.Handler) {
				given := r.Header.Get("Authorization")
				echoed.Add(int64(strings.Count(given, key)))
				echo(w, given)
			})
			r := run(t, []string{"MY_KEY=" + key}, with(smallLoad, "--url", url, "--credential-env", "MY_KEY", "--capacity-calibrate=false", "--capacity-abort-error-rate", "1")...)
			g.Expect(r.red(t)).To(Equal([]string{"valid"}), r.output)
			g.Expect(echoed.Load()).To(BeEquivalentTo(60))
			g.Expect(r.output).NotTo(ContainSubstring(key))
			g.Expect(filepath.Join(r.runDir(), "failures")).To(BeADirectory())
			for path, data := range snapshot(t, r.runDir()+"/") {
				g.Expect(data).NotTo(ContainSubstring(key), path)
			}
		})
	}
}
