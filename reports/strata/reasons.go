package strata

import (
	"fmt"

	"plumbline/fixtures"
)

// All words that a document says about itself stand in this file: why a value is null, and why a run does not conform.
// Why a prompt could not be checked is said by the judge, and why a figure is not known by whoever measured it.

// Reasons of nulls that do not depend on the run.
const (
	whySentAsNull    = "the profile itself sends null here"
	whyNotInDocument = "this document does not hold the value"

	whyNoCardRevision = "profiles do not name a revision of the model's card"
	whyNoRunnerCommit = "the build did not name its source commit, or the source tree had changes beside it"
	whyNoRunnerVer    = "this program was built without a version"

	whyWarmupUnsent     = "the clock starts with the warm-up, and that was not sent"
	whyRequiredUnsent   = "the clock stops with the last required request, and that was not sent"
	whyStageNotAsked    = "the concurrency stage was not asked for; --concurrency-stage adds it"
	whyStageUnsent      = "the concurrency stage was asked for, but none of its requests was sent"
	whyNotARound        = "only requests of the concurrency stage belong to a round"
	whyNoError          = "nothing went wrong"
	whyNoFinish         = "no finish reason arrived"
	whyNoDelta          = "no output arrived"
	whyCountsAgree      = "no two counts of this request differ"
	whyNotJudged        = "answers are judged in the sanity phase only"
	whyNotSent          = "the request was not sent"
	whyNothingToSum     = "no repetition of this case has this figure"
	whyNoRoundSent      = "no request of the round was sent"
	whyNoRoundReply     = "no reply of the round arrived whole with an output count"
	whyRoundIncomplete  = "not every reply of the round arrived whole, with output at two moments or more"
	whyNeverTogether    = "there was no moment at which every reply of the round was under way"
	whyNoRoundRate      = "no reply of the round has a decode rate"
	whyNoWall           = "the round took no measurable time"
	whyNoRepetitions    = "a drift needs this rate in two repetitions of the case, the first and the last"
	whyNoClientRate     = "the client's clock gives no rate for this reply"
	whyNothingMeasured  = "no reply of this run has a rate"
	whyBasesDiffer      = "some rates of this run are from the engine's clock, others from the client's"
	whyConventionsMixed = "the replies of this run count the decode interval in different ways"
	whyNoResolution     = "the smallest step of the client's clock was not measured"
)

// Reasons of nulls among the facts.
const (
	whyEngineElsewhere = "the engine does not run on this machine, and its interface tells nothing about its own"
	whyUnread          = "this machine does not tell"
	whyNoGPUState      = "the accelerators were not looked at before and after the phases"
	whyNoGauge         = "the vendor's tool does not tell it"
	whyNoPowerLimit    = "the vendor's tool does not tell the power limit"
	whyNoMemory        = "the vendor's tool does not tell the memory"
	whyNoMemoryKind    = "the vendor's tool does not tell the kind of memory"
	whyNoPartName      = "the vendor's tool does not tell its name"
	whyNoPartVersion   = "its version could not be read"

	whyNoKind           = "the record does not say how the engine was had"
	whyEngineSilent     = "the engine does not tell"
	whyNotStrata        = "the engine is %s, not strata; its commit, where told, is engine_commit among the extensions"
	whyEngineUnnamed    = "the engine does not tell its name, so its commit cannot be called strata's"
	whyNoModelNamed     = "no model was named, and the server offered none to choose"
	whyOptionUnseen     = "the engine does not show this option of its own; note it with --track-notes"
	whyNoCapacity       = "the engine does not tell how many requests it serves at once; --server-capacity says it"
	whyNoTemplate       = "the engine does not show its chat template, so none is among the artifacts"
	whyNoModels         = "the engine did not name the models that it serves"
	whyNotAskedAgain    = "the engine was not asked again after the last request, or could not be"
	whyNoRequestsServed = "the engine does not count the requests that it has served"

	whyHashSkipped  = "hashing the model files was declined with --skip-model-hash"
	whyPathUntold   = "the server does not tell the path of its model file"
	whyFileNotHere  = "the model file that the server names is not on this host"
	whyNamedUnread  = "the model file that --model-file names could not be read"
	whyFileUnhashed = "this file could not be hashed"
)

// undeclared is the reason for a value that only the operator knows, naming the flag that fills it.
func undeclared(flag string) string {
	return fmt.Sprintf("only the operator can know this; %s declares it", flag)
}

// statusReason is one way for a run not to conform: a stable code, a fixed sentence, and when it holds.
type statusReason struct {
	code, sentence string
	holds          func(*standing) bool
}

// statusReasons in the order in which a document lists them (ours, except model-file reasons: ref).
var statusReasons = []statusReason{
	{"engine_mock", "the engine is the mock built into this program, so nothing here describes a real one",
		func(s *standing) bool {
			return s.run.Header.Engine.Kind == "mock" || s.run.Header.Engine.Name == fixtures.MockEngine
		}},
	{"engine_replay", "the engine replays recorded exchanges, so nothing here was measured anew",
		func(s *standing) bool { return s.run.Header.Engine.Kind == "replay" }},
	{"engine_refused", "the engine could not be used at all",
		func(s *standing) bool { return s.run.Header.Refusal != "" }},
	{"run_interrupted", "the run was cut short before its last required request",
		func(s *standing) bool {
			return s.skipped > 0 && s.run.End != nil && s.run.End.Interrupted != ""
		}},
	{"record_torn", "the record ends inside a line",
		func(s *standing) bool { return s.run.Torn }},
	{"record_without_end", "the record has no closing line: the program was stopped before it could write one",
		func(s *standing) bool { return s.run.End == nil }},
	{"required_request_skipped", "a required request was not sent",
		func(s *standing) bool { return s.skipped > 0 }},
	{"required_request_failed", "a required request failed",
		func(s *standing) bool { return s.failed > 0 }},
	{"model_hash_skipped", "the operator declined to have the model files hashed",
		func(s *standing) bool { return s.unhashed == whyHashSkipped }},
	{"model_file_not_on_host", "the model files are not on this host to be hashed",
		func(s *standing) bool { return s.unhashed == whyFileNotHere }},
	{"model_path_untold", "the server does not say which model files it serves, so none could be hashed",
		func(s *standing) bool { return s.unhashed == whyPathUntold }},
	{"model_file_unread", "a model file that the operator named could not be read",
		func(s *standing) bool { return s.unhashed == whyNamedUnread }},
	{"prompt_reuse", "the engine took more of a required prompt from a cache than prompts of the plan have in common",
		func(s *standing) bool { return s.reused }},
	{"reuse_unchecked", "the engine did not say how much of a measured prompt came from a cache",
		func(s *standing) bool { return s.reuseUnchecked }},
	{"length_outside_tolerance", "the engine counted a required prompt longer or shorter than it is",
		func(s *standing) bool { return s.lengthOff }},
	{"length_unchecked", "whether a measured prompt was read whole could not be checked, for want of counts by the engine's own tokenizer",
		func(s *standing) bool { return s.lengthUnchecked }},
	{"usage_untold", "the engine did not say how many tokens a measured request read, or how many it wrote",
		func(s *standing) bool { return s.usageUntold }},
	{"settings_overridden", "the operator changed sampling or budgets of the profile",
		func(s *standing) bool { return len(s.run.Header.Profile.Overridden) > 0 }},
	{"corpus_not_protocol", "the prompts, or the plan made of them, are not the protocol's own",
		func(s *standing) bool { return !s.run.Header.Protocol.BuiltIn || !isProtocolPlan(s.run.Header.Plan) }},
	{"served_model_changed", "the engine no longer served the same model after the last request",
		func(s *standing) bool { return s.modelChanged() }},
	{"after_untold", "the engine did not say after the last request which models it serves, so that a change would go unseen",
		func(s *standing) bool { return s.afterUntold() }},
	{"other_requests_served", "the engine served requests of others while it was measured",
		func(s *standing) bool { return s.foreignRequests() > 0 }},
}

// Words about requests that were not sent or not judged, and about sources.
const (
	errNotReached    = "the run ended before this request's turn came"
	errInterrupted   = "the run ended before this request's turn came: %s"
	verdictUnsent    = "not judged: the request was not sent"
	verdictNoKey     = "not judged: the case has no answer key"
	sourceNone       = "not available: %s"
	noteOverBudget   = "the reply has %d output tokens, against its budget of %d"
	noteCountsDiffer = "the counts of this request do not add up, and the server does not say why"
	sourceUnsaid     = "not recorded"
	sourceClientRate = "; decode_tps: %s"
	excludedStatus   = "the status of the request is %s"
	excludedBasis    = "this rate is from the client's clock, others of the run are from the engine's"
)

// Words about the figures.
const (
	unnamed       = "(no name)"
	noteFixedCost = "prompt_tps of the case short is a fixed cost spread over a few tokens, not a rate of reading"
	noteTotals    = "total_s mixes replies that ended by themselves with replies that ran into their budget: rates and first-token times compare, totals do not"
	textFixedCost = "prefill of short is a fixed cost, not a rate"
)
