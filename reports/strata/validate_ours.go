package strata

import (
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"plumbline/corpus"
	"plumbline/fixtures"
)

// ours holds a document that names this program as its runner to what this program writes: every extension is there,
// and says what the rest of the document bears out. Other runners' extensions are their own matter.
func (v *validation) ours(data []byte) {
	if v.root.get("extensions", "runner").word() != Runner {
		return
	}
	d, err := Parse(data)
	if err != nil {
		return // types are wrong, and the schema has told which
	}
	v.extensionsComplete(d)
	v.reasonSentences()
	v.reasonsBorneOut(d)
	v.findings(d)
	v.gpuStates(d)
	v.stage(d)
	v.budgets(d)
	if want := timingBasis(d.Requests); !sameValue(want, d.Extensions.TimingBasis) {
		v.faultAt("/extensions/timing_basis", "expected %s by the rates of the requests, received %s", shown(want), shown(d.Extensions.TimingBasis))
	}
	if want := notes(d.Summaries); !slices.Equal(want, d.Extensions.Notes) {
		v.faultAt("/extensions/notes", "expected %q by the summaries, received %q", want, d.Extensions.Notes)
	}
}

func sameValue(a, b Null[string]) bool { return a.value == b.value && a.known == b.known }

func shown(n Null[string]) string {
	if value, known := n.Get(); known {
		return value
	}
	return "null"
}

// extensionsComplete checks that no extension is left out, and that those by request or by case have each of them.
func (v *validation) extensionsComplete(d *Document) {
	const at = jsontext.Pointer("/extensions")
	extensions := v.root.get("extensions")
	for field := range reflect.TypeFor[Extensions]().Fields() {
		if name := field.Tag.Get("json"); extensions.get(name) == nil {
			v.faultAt(at.AppendToken(name), "this member is required and is not there")
		}
	}
	rates, drift := extensions.get("client_decode_tps"), extensions.get("repetition_drift")
	for _, r := range d.Requests {
		if rates != nil && rates.get(r.ID) == nil {
			v.faultAt(rates.at.AppendToken(r.ID), "the client's rate of this request is not there")
		}
		if drift != nil && r.Phase == corpus.PhasePerformance && drift.get(r.CaseID) == nil {
			v.faultAt(drift.at.AppendToken(r.CaseID), "the drift of this case is not there")
		}
	}
	for id, rate := range rates.fields() {
		if !slices.ContainsFunc(d.Requests, func(r Request) bool { return r.ID == id }) {
			v.fault(rate, "there is no request of this id")
		}
	}
}

// reasonSentences checks that every code is known and stands in its place, beside its own sentence.
func (v *validation) reasonSentences() {
	sentences := v.root.get("extensions", "status_reasons").list()
	last := -1
	for i, n := range v.root.get("extensions", "status_reason_codes").list() {
		code := n.word()
		place := slices.IndexFunc(statusReasons, func(r statusReason) bool { return r.code == code })
		if place < 0 {
			v.fault(n, "there is no such code")
			continue
		}
		if place <= last {
			v.fault(n, "%q stands twice, or after a code that it comes before", code)
		}
		last = max(last, place)
		if want := statusReasons[place].sentence; i < len(sentences) && sentences[i].word() != want {
			v.fault(sentences[i], "expected the sentence of the code %q, %q, received %q", code, want, sentences[i].word())
		}
	}
}

// bearing says what of a document bears out a status reason: one of the codes must be given when it holds, and, where
// the document shows all that the reason rests on, none of them otherwise.
type bearing struct {
	codes []string
	holds func(*Document, tally) bool
	all   bool
}

var bearings = []bearing{
	{[]string{"engine_mock"}, func(d *Document, _ tally) bool {
		return d.Extensions.EngineKind.value == "mock" || d.Extensions.EngineName.value == fixtures.MockEngine
	}, true},
	{[]string{"engine_replay"}, func(d *Document, _ tally) bool { return d.Extensions.EngineKind.value == "replay" }, true},
	{[]string{"required_request_skipped"}, func(_ *Document, t tally) bool { return t.skipped > 0 }, true},
	{[]string{"required_request_failed"}, func(_ *Document, t tally) bool { return t.failed > 0 }, true},
	{[]string{"model_hash_skipped", "model_file_not_on_host", "model_path_untold", "model_file_unread"}, func(d *Document, _ tally) bool {
		return !d.refused() && (len(d.Model.Files.value) == 0 ||
			slices.ContainsFunc(d.Model.Files.value, func(f ModelFile) bool { return !f.SHA256.known }))
	}, true},
	{[]string{"prompt_reuse"}, func(_ *Document, t tally) bool { return t.reused }, true},
	{[]string{"reuse_unchecked"}, func(_ *Document, t tally) bool { return t.reuseUnchecked }, true},
	{[]string{"length_outside_tolerance"}, func(_ *Document, t tally) bool { return t.lengthOff }, true},
	{[]string{"length_unchecked"}, func(_ *Document, t tally) bool { return t.lengthUnchecked }, true},
	{[]string{"usage_untold"}, func(_ *Document, t tally) bool { return t.usageUntold }, true},
	{[]string{"corpus_not_protocol"}, func(d *Document, _ tally) bool { return !followsProtocol(d.Requests) }, false},
	{[]string{"served_model_changed"}, func(d *Document, _ tally) bool {
		return modelChanged(d.Model.ID.value, d.Extensions.ServedModelsBefore.value, d.Extensions.ServedModelsAfter.value)
	}, true},
	{[]string{"after_untold"}, func(d *Document, _ tally) bool { return !d.refused() && !d.Extensions.ServedModelsAfter.known }, true},
}

// refused reports whether the document says that the engine could not be used.
func (d *Document) refused() bool { return d.hasCode("engine_refused") }

func (d *Document) hasCode(code string) bool {
	return slices.Contains(d.Extensions.StatusReasonCodes, code)
}

// reasonsBorneOut holds the reasons given against the document.
func (v *validation) reasonsBorneOut(d *Document) {
	t := tallyOf(d)
	list := v.root.get("extensions", "status_reason_codes")
	for _, b := range bearings {
		given := slices.IndexFunc(list.list(), func(n *node) bool { return slices.Contains(b.codes, n.word()) })
		switch holds := b.holds(d, t); {
		case holds && given < 0 && list != nil:
			v.fault(list, "expected %s among the codes: the document bears it out", strings.Join(b.codes, " or "))
		case !holds && given >= 0 && b.all:
			v.fault(list.items[given], "nothing in the document bears out %q", list.items[given].word())
		}
	}
}

// stage holds what is said of the optional stage against the requests. It may have none where the engine could not be
// used, or may serve only one at once, for all that is known.
func (v *validation) stage(d *Document) {
	asked, counts := d.Run.OptionalConcurrency, d.RequestCounts.Concurrency
	planned := slices.ContainsFunc(d.Requests, func(r Request) bool { return r.Phase == corpus.PhaseConcurrency })
	if capacity, _ := d.Configuration.ServerCapacity.Get(); asked && !planned && capacity > 1 && !d.refused() {
		v.faultAt("/run/optional_concurrency", "expected requests of the concurrency stage: it was asked for, and the server has a capacity of %d", capacity)
	}
	if skipped := asked && counts.Attempted == 0; d.Extensions.OptionalStageSkipped != skipped {
		v.faultAt("/extensions/optional_stage_skipped", "expected %t by the requests, received %t", skipped, d.Extensions.OptionalStageSkipped)
	}
}

// budgets checks that an output budget is the protocol's, unless a status reason says that it is not.
func (v *validation) budgets(d *Document) {
	if d.hasCode("settings_overridden") || d.hasCode("corpus_not_protocol") {
		return
	}
	for _, r := range v.rows {
		if want, known := budgetOf[r.phase]; known {
			v.wantWhole(r.get("max_output_tokens"), int64(want), "(the budget of the phase, and no status reason says why another)")
		}
	}
}
