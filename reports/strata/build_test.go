package strata

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/tidwall/gjson"

	"plumbline/fixtures"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

func TestBuildingFromTheReferencesFiguresGivesItsRowsCountsSummariesAndQuality(t *testing.T) {
	g := NewWithT(t)
	_, data := mustBuild(t, referenceRun(t), referenceReplies(t))
	for _, part := range []string{"request_counts", "summaries", "quality", "concurrency_rounds"} {
		want := gjson.GetBytes(reference(t), part).Raw
		if part == "summaries" { // one reason is in the other runner's words
			g.Expect(want).To(ContainSubstring("first_answer_s is not available for this request"))
			want = replaceOnce(want, "first_answer_s is not available for this request", "no answer text or tool call arrived (reasoning alone does not count)")
		}
		g.Expect(gjson.GetBytes(data, part).Raw).To(MatchJSON(want), part)
	}
	for i, want := range gjson.GetBytes(reference(t), "requests").Array() {
		g.Expect(gjson.GetBytes(data, fmt.Sprintf("requests.%d", i)).Raw).To(MatchJSON(want.Raw))
	}
}

func TestNumbersOfTheReferenceAreWrittenDigitForDigit(t *testing.T) {
	g := NewWithT(t)
	_, data := mustBuild(t, referenceRun(t), referenceReplies(t))
	digits := func(raw string) (all []string) {
		root, _ := readTree([]byte(raw))
		for n := range root.all() {
			if n.kind == '0' {
				all = append(all, n.raw)
			}
		}
		return all
	}
	for _, part := range []string{"requests", "summaries"} {
		want := digits(gjson.GetBytes(reference(t), part).Raw)
		g.Expect(len(want)).To(BeNumerically(">", 60))
		g.Expect(digits(gjson.GetBytes(data, part).Raw)).To(Equal(want))
	}
}

func TestKeysStandInTheReferencesOrder(t *testing.T) {
	g := NewWithT(t)
	_, data := mustBuild(t, referenceRun(t), referenceReplies(t))
	ours, _ := readTree(data)
	refs, _ := readTree(reference(t))
	for _, path := range [][]string{{}, {"protocol"}, {"run"}, {"hardware"}, {"software"}, {"software", "os"}, {"model"},
		{"configuration"}, {"configuration", "template"}, {"request_counts"}, {"request_counts", "sanity"}, {"quality"}, {"quality", "categories"}} {
		g.Expect(ours.get(path...).names).To(Equal(refs.get(path...).names), "%v", path)
	}
	for _, list := range []string{"requests", "summaries", "artifacts"} {
		g.Expect(ours.get(list).list()[0].names).To(Equal(refs.get(list).list()[0].names), list)
	}
	g.Expect(ours.get("hardware", "gpus").list()[0].names).To(Equal(refs.get("hardware", "gpus").list()[0].names))
	for _, part := range []string{"tokens", "timings", "metrics", "sources"} {
		g.Expect(ours.get("requests").list()[0].get(part).names).To(Equal(refs.get("requests").list()[0].get(part).names), part)
	}
	theirs := refs.get("extensions").names
	mine := []string{}
	for _, name := range ours.get("extensions").names {
		if refs.get("extensions", name) != nil {
			mine = append(mine, name)
		}
	}
	g.Expect(mine).To(Equal(theirs))
}

func TestTheDocumentIsTheGoldenOne(t *testing.T) {
	for name, run := range goldenRuns(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := referenceReplies(t)
			if name == "concurrency" {
				withStage(run, all, 2, 2)
				all.find("warmup", transcript.MissingDone, transcript.Warning)
			}
			_, data := mustBuild(t, run, all)
			g.Expect(Validate(data, nil)).To(BeEmpty())
			path := "testdata/" + name + ".golden.json"
			if *update {
				g.Expect(os.WriteFile(path, data, 0o644)).To(Succeed())
			}
			g.Expect(string(data)).To(Equal(string(readFile(t, path))))
		})
	}
}

// goldenRuns are a whole run with a concurrency stage, and one whose engine was not there.
func goldenRuns(t *testing.T) map[string]*fixtures.Run {
	whole := referenceRun(t)
	refused := referenceRun(t)
	refused.Exchanges, refused.After = nil, nil
	refused.Header.Refusal = "connect to http://127.0.0.1:8080: connection refused"
	refused.Header.Engine = fixtures.EngineFacts{Kind: "live", URL: "http://127.0.0.1:8080"}
	refused.Header.Host = fixtures.HostFacts{}
	refused.Header.Model = ""
	return map[string]*fixtures.Run{"concurrency": whole, "refused": refused}
}

func TestBuildIsAPureFunction(t *testing.T) {
	g := NewWithT(t)
	_, first := mustBuild(t, referenceRun(t), referenceReplies(t))
	_, second := mustBuild(t, referenceRun(t), referenceReplies(t))
	g.Expect(second).To(Equal(first))
}

func TestANullWithoutAReasonIsABuildErrorThatNamesItsPlace(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	all.edit("sanity-I2", func(f *measure.Figures) { f.TTFT = measure.Maybe[float64]{} })
	_, err := build(referenceRun(t), outputsDigest, all.read)
	g.Expect(err).To(MatchError(ContainSubstring(`"/requests/11/timings/ttft_s"`)))
}

func TestAFigureThatIsNotFiniteIsABuildError(t *testing.T) {
	g := NewWithT(t)
	all := referenceReplies(t)
	all.edit("warmup", func(f *measure.Figures) { f.DecodeTPS.Value = math.NaN() })
	_, err := build(referenceRun(t), outputsDigest, all.read)
	g.Expect(err).To(MatchError(ContainSubstring("expected a finite value, received NaN")))
}

func TestARecordThatContradictsItselfIsABuildError(t *testing.T) {
	for want, spoil := range map[string]func(*fixtures.Run){
		`exchange "stray": the plan has no such request`: func(r *fixtures.Run) { r.Exchanges[3].ID = "stray" },
		`exchange "warmup": expected one, received two`:  func(r *fixtures.Run) { r.Exchanges[3].ID = "warmup" },
		`expected each id once, received "warmup" twice`: func(r *fixtures.Run) { r.Header.Plan[2].ID = "warmup" },
	} {
		run := referenceRun(t)
		spoil(run)
		_, err := build(run, outputsDigest, referenceReplies(t).read)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestNullsInsideTheProfilesOwnObjectsHaveAReason(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Profile.Sampling = json.RawMessage(`{"min_p": null, "stop": ["a", null]}`)
	d, data := mustBuild(t, run, referenceReplies(t))
	for _, at := range []string{"/configuration/sampling/min_p", "/configuration/sampling/stop/1"} {
		reason, ok := d.Missing.Get(at)
		g.Expect(ok).To(BeTrue(), at)
		g.Expect(reason).NotTo(BeEmpty())
	}
	g.Expect(Validate(data, nil)).To(BeEmpty())
}

func TestTextIsWrittenWithoutHTMLEscapes(t *testing.T) {
	g := NewWithT(t)
	run := referenceRun(t)
	run.Header.Declared.TrackNotes, run.Header.Declared.Background = "<a> & b", ""
	run.Header.Engine.Options["<x>"] = "&"
	run.Header.Host.Reasons["storage"] = "<unknown>"
	_, data := mustBuild(t, run, referenceReplies(t))
	for _, text := range []string{`'two <windows> & more'`, `"<a> & b"`, `"<x>": "&"`, `"<unknown>"`} {
		g.Expect(string(data)).To(ContainSubstring(text))
	}
}

func TestTheRequiredDurationRunsFromTheWarmupToTheLastRequiredEnd(t *testing.T) {
	g := NewWithT(t)
	run, all := referenceRun(t), referenceReplies(t)
	for i := range run.Exchanges {
		run.Exchanges[i].SinceStart += 5 * time.Second
	}
	withStage(run, all, 2, 1)
	d, _ := mustBuild(t, run, all)
	last := run.Exchanges[21]
	required, _ := d.Run.RequiredDuration.Get()
	g.Expect(required.Float64()).To(BeNumerically("~", (last.SinceStart + last.End.At - 5*time.Second).Seconds(), 0.0005))
	optional, _ := d.Run.OptionalDuration.Get()
	g.Expect(optional.String()).To(Equal("5.0"), "the second of two requests ends five seconds after both were sent")
}

func TestEveryNullOfAnyPartialRunHasAReasonAndItsDocumentIsValid(t *testing.T) {
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 7))
		run, all := referenceRun(t), referenceReplies(t)
		chance := func(n int) bool { return random.IntN(n) == 0 }
		if chance(2) {
			withStage(run, all, 2+random.IntN(3), 1+random.IntN(2))
		}
		for id := range all {
			switch random.IntN(6) {
			case 0:
				all.fail(id)
			case 1:
				all.edit(id, func(f *measure.Figures) { forget(random, f) })
			}
		}
		kept := run.Exchanges[:0]
		for _, e := range run.Exchanges {
			if !chance(8) {
				kept = append(kept, e)
			}
		}
		run.Exchanges = kept
		if chance(3) {
			run.Exchanges = run.Exchanges[:random.IntN(len(run.Exchanges)+1)]
		}
		run.Torn = chance(4)
		for _, spoil := range []func(){
			func() { run.End = nil }, func() { run.After = nil }, func() { run.Header.Host = fixtures.HostFacts{EngineHere: true} },
			func() { run.Header.Host = fixtures.HostFacts{} }, func() { run.Header.Engine = fixtures.EngineFacts{} },
			func() { run.Header.Declared = fixtures.Declared{} }, func() { run.Header.Artifacts = nil },
			func() { run.Header.Profile = fixtures.Profile{} }, func() { run.Header.RunnerCommit = "" },
			func() { run.Header.ClockResolution = 0 }, func() { run.Header.Model = "" },
		} {
			if chance(3) {
				spoil()
			}
		}
		for i := range run.Header.Plan {
			if chance(4) {
				run.Header.Plan[i].ContentTokens, run.Header.Plan[i].SharedPrefixTokens = nil, nil
			}
			if chance(4) {
				run.Header.Plan[i].FrozenInputTokens = ptr(random.IntN(200))
			}
		}
		g := NewWithT(t)
		d, err := build(run, outputsDigest, all.read)
		g.Expect(err).NotTo(HaveOccurred(), "seed %d", seed)
		for _, m := range d.Missing {
			g.Expect(m.Value).NotTo(BeEmpty(), m.Key)
		}
		data, err := d.Marshal()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(Validate(data, nil)).To(BeEmpty(), "seed %d", seed)
		back, err := Parse(data)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := back.Marshal()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(again)).To(Equal(string(data)), "seed %d", seed)
	}
}

// forget makes some figures of a request unknown, as a server that leaves them out does.
func forget(random *rand.Rand, f *measure.Figures) {
	const why = "the server left it out"
	switch random.IntN(5) {
	case 0:
		f.CachedTokens = measure.Unknown[int64](why)
	case 1:
		f.InputTokens, f.OutputTokens = measure.Unknown[int64](why), measure.Unknown[int64](why)
	case 2:
		f.PromptSeconds, f.PromptTPS, f.ReadTokens = measure.Unknown[float64](why), measure.Unknown[float64](why), measure.Unknown[int64](why)
	case 3:
		f.FirstAnswer = measure.Unknown[float64](why)
	case 4:
		f.Basis, f.DecodeSeconds, f.DecodeTokens = measure.ClientBasis, measure.Unknown[float64](why), measure.Unknown[int64](why)
	}
}
