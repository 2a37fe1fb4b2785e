package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plumbline/fixtures"
	"plumbline/fixtures/engines"
	"plumbline/harness/engine"
	"plumbline/harness/facts"
	"plumbline/harness/measure"
	"plumbline/harness/transcript"
)

// check is one row of the table: how a question is put, how it is answered, and what to do about a bad answer.
type check struct {
	id, question, how, mend string
	look                    func(e *evidence) (Status, string)
}

// checks in the order in which they are shown. Whatever keeps a later one from being answered stands before it.
var checks = []check{
	{"server", "Does a server answer?", "GET /v1/models",
		"see that it runs and --url leads to it; --within gives a slow one more time", (*evidence).server},
	{"key", "Is the key accepted?", "GET /v1/models and one chat request with the key",
		"name the right key's place with --credential-env NAME or --credential-file FILE", (*evidence).key},
	{"interface", "Is it ready, and of this interface?", "the list of models in GET /v1/models",
		"give the base address of a server that speaks the chat-completions interface, and has loaded its model",
		(*evidence).speaks},
	{"model", "Is the model served?", "the list of models, against --model",
		"load the model, or name one of the list with --model", (*evidence).model},
	{"stream", "Does it stream a whole reply?", "one short chat request with stream and the profile's sampling",
		"switch streaming on, choose a --profile whose fields the server takes, or raise --within for a slow one",
		(*evidence).stream},
	{"usage", "Does it count its tokens?", "usage in that reply, as stream_options.include_usage asks",
		"choose a version or an option of the server that sends usage with a stream", (*evidence).usage},
	{"cache", "Does it tell what came from a cache?", "cached tokens in that reply's usage or timings",
		"choose an option of the server that tells cached tokens", (*evidence).cache},
	{"timings", "Does it tell its own times?", "timings in that reply",
		"none is needed: decode rates are then taken from the client's clock, and prompt rates are null", (*evidence).timings},
	{"tokenizer", "Can it count a text?", "POST /tokenize",
		"none is needed where the profile's tokenizer is the model's; otherwise lengths cannot be checked", (*evidence).tokenizer},
	{"template", "Does it tell its chat template?", "GET /props",
		"nothing on this side: the result then has no template", (*evidence).template},
	{"capacity", "Does it tell how many requests it serves at once?", "GET /slots, /props, /v1/status",
		"say it with --server-capacity", (*evidence).capacity},
	{"context", "Does every case fit into its context?",
		"the context told, against each prompt with the template's head and its budget",
		"start the server with a context that holds the longest request", (*evidence).context},
	{"model-file", "Can the model's files be identified?", "the path that the server names, or --model-file, opened here",
		"give the paths of all of them on this machine with --model-file", (*evidence).modelFile},
	{"disk", "Can the run's files be kept?", "a file written and removed, and the free space",
		"free some space, or choose another folder with --out", (*evidence).disk},
	{"clock", "Is the clock fine enough?", "the smallest step in 50,000 readings",
		"run the suite on a machine whose monotonic clock steps in less than a millisecond", (*evidence).clock},
	{"gpu", "Are the accelerators seen?", "nvidia-smi, amd-smi, rocm-smi",
		"install the vendor's tool on the engine's machine", (*evidence).gpu},
	{"docker", "Can containers be started?", "GET /_ping on Docker's socket",
		"start Docker, and pull or build the image beforehand or let --engine-pull pull it", (*evidence).dockerAnswers},
}

// unasked says why nothing is known of an engine; "" when it was asked.
func (e *evidence) unasked() string {
	switch {
	case e.form != "":
		return "the engine is started for each run, and not for this"
	case e.keyErr != nil:
		return "there is no key to ask with"
	case e.startErr != nil:
		return "the engine could not be started"
	}
	return ""
}

// untold says why what an engine tells is not known; "" when it was told.
func (e *evidence) untold() string {
	switch {
	case e.unasked() != "":
		return e.unasked()
	case e.engineErr != nil:
		return "the engine could not be asked"
	}
	return ""
}

// unsent says why there is no whole reply to look at; "" when there is one.
func (e *evidence) unsent() string {
	switch {
	case e.untold() != "":
		return e.untold()
	case e.modelErr != nil:
		return "no model can be asked"
	case !e.probe.answered():
		return "no whole reply came"
	}
	return ""
}

func (e *evidence) server() (Status, string) {
	switch {
	case e.form == engines.FormProcess && e.programErr == nil:
		return OK, fmt.Sprintf("%s is started for each run: %s", e.settings.EngineName(), e.program)
	case e.form != "" && e.programErr == nil:
		return Note, fmt.Sprintf("%s is started for each run; see docker", e.settings.EngineName())
	case e.form != "":
		return Failed, e.programErr.Error()
	case e.keyErr != nil:
		return NotAsked, e.unasked()
	case e.startErr != nil:
		return Failed, e.startErr.Error()
	case e.problemIn(engine.Unreachable, engine.NoAnswer, engine.NotHTTP, engine.Interrupted):
		return Failed, e.engineErr.Text
	case e.header.Engine.Kind == engine.KindMock:
		return OK, "the built-in mock engine: without --url a run is a rehearsal"
	case e.header.Engine.Kind == engine.KindReplay:
		return OK, "a replay of what was recorded: nothing is measured anew"
	}
	name := strings.TrimSpace(e.header.Engine.Name + " " + e.header.Engine.Version)
	return OK, strings.TrimSpace(cmp.Or(name, "a server that does not tell its name") + " at " + e.header.Engine.URL)
}

func (e *evidence) key() (Status, string) {
	switch {
	case e.keyErr != nil:
		return Failed, e.keyErr.Error()
	case e.unasked() != "":
		return NotAsked, e.unasked()
	case e.problemIn(engine.KeyRefused):
		return Failed, e.engineErr.Text
	case e.engineErr != nil:
		return NotAsked, e.untold()
	case e.probe.keyRefused() && !e.header.APIKeySent:
		return Failed, fmt.Sprintf("it lists its models to anybody, but wants an API key for a chat (status %d)", e.probe.status())
	case e.probe.keyRefused():
		return Failed, fmt.Sprintf("it lists its models, but refuses the API key for a chat (status %d)", e.probe.status())
	case !e.header.APIKeySent:
		return OK, "none is asked for"
	}
	return OK, "sent, and not refused"
}

func (e *evidence) speaks() (Status, string) {
	switch {
	case e.problemIn(engine.NotOurs, engine.NotReady):
		return Failed, e.engineErr.Text
	case e.untold() != "":
		return NotAsked, e.untold()
	}
	return OK, fmt.Sprintf("%d listed", len(e.header.Engine.ServedModels))
}

func (e *evidence) model() (Status, string) {
	switch {
	case e.untold() != "":
		return NotAsked, e.untold()
	case e.modelErr != nil:
		return Failed, e.modelErr.Text
	}
	return OK, fmt.Sprintf("%q", e.header.Model)
}

func (e *evidence) stream() (Status, string) {
	switch {
	case e.untold() != "":
		return NotAsked, e.untold()
	case e.modelErr != nil:
		return NotAsked, e.unsent()
	case e.probe.err != nil:
		return Failed, e.probe.err.Error()
	case e.probe.keyRefused():
		return NotAsked, "the key was refused"
	case !e.probe.answered():
		return Failed, e.probe.figures.Error.Value
	}
	for _, f := range e.probe.transcript.Findings {
		if f.ID == transcript.MissingDone { // whole all the same
			return Warning, f.Sentence
		}
	}
	answer := fmt.Sprintf("%d pieces of output", len(e.probe.transcript.Deltas))
	if e.probe.figures.TTFT.Known {
		answer += ", the first after " + time.Duration(e.probe.figures.TTFT.Value*float64(time.Second)).Round(time.Millisecond).String()
	}
	return OK, answer
}

// told answers a check on one figure of the reply.
func (e *evidence) told(figure measure.Maybe[int64], what string) (Status, string) {
	if why := e.unsent(); why != "" {
		return NotAsked, why
	}
	if !figure.Known {
		return Warning, figure.Reason
	}
	return OK, fmt.Sprintf("%d %s", figure.Value, what)
}

func (e *evidence) usage() (Status, string) {
	input, output := e.probe.figures.InputTokens, e.probe.figures.OutputTokens
	if !input.Known {
		return e.told(input, "")
	}
	status, answer := e.told(output, "out")
	if status == OK {
		answer = fmt.Sprintf("%d in, %s", input.Value, answer)
	}
	return status, answer
}

func (e *evidence) cache() (Status, string) {
	return e.told(e.probe.figures.CachedTokens, "from a cache")
}

func (e *evidence) timings() (Status, string) {
	if why := e.unsent(); why != "" {
		return NotAsked, why
	}
	if e.probe.transcript.Timings == nil {
		return Warning, "no timings: rates are the client's, and prompt rates null"
	}
	return OK, "told with the reply"
}

func (e *evidence) tokenizer() (Status, string) {
	switch {
	case e.untold() != "":
		return NotAsked, e.untold()
	case e.countErr != nil:
		return Warning, e.countErr.Error()
	case e.header.Engine.CanTokenize:
		return OK, "every prompt was counted"
	case e.profile.Tokenizer == "":
		return Warning, "it offers none, and the profile claims none"
	}
	return Warning, fmt.Sprintf("it offers none: lengths rest on the counts of %q", e.profile.Tokenizer)
}

func (e *evidence) template() (Status, string) {
	switch {
	case e.untold() != "":
		return NotAsked, e.untold()
	case e.header.Engine.ChatTemplate == "":
		return Warning, "it does not"
	}
	return OK, fmt.Sprintf("%d bytes", len(e.header.Engine.ChatTemplate))
}

func (e *evidence) capacity() (Status, string) {
	capacity := e.header.ServerCapacity
	switch {
	case capacity != nil && e.settings.ServerCapacity > 0:
		return OK, fmt.Sprintf("%d, as --server-capacity says", *capacity)
	case e.untold() != "":
		return NotAsked, e.untold()
	case capacity == nil && e.settings.ConcurrencyStage:
		return Failed, "it does not, and --concurrency-stage needs to know"
	case capacity == nil:
		return Warning, "it does not"
	case *capacity == 1 && e.settings.ConcurrencyStage:
		return Failed, "one, and --concurrency-stage needs two or more"
	}
	return OK, fmt.Sprint(*capacity)
}

func (e *evidence) context() (Status, string) {
	if why := e.untold(); why != "" {
		return NotAsked, why
	}
	f, room := e.fit(), e.header.Engine.ContextTokens
	by := "the engine's tokenizer"
	if !f.own {
		by = "the profile's"
	}
	switch {
	case !f.counted && f.need == 0:
		return Warning, "nobody counted the prompts: neither the engine nor the profile's tokenizer"
	case room == nil:
		return Warning, fmt.Sprintf("it does not tell its context; the longest request needs %d tokens by %s", f.need, by)
	case f.tooLong > 0:
		return Failed, fmt.Sprintf("it holds %d tokens, and the longest request needs %d by %s: %d of %d requests do not fit",
			*room, f.need, by, f.tooLong, len(e.header.Plan))
	}
	return OK, fmt.Sprintf("it holds %d tokens, and the longest request needs %d by %s", *room, f.need, by)
}

func (e *evidence) modelFile() (Status, string) {
	host := e.header.Host
	unread := slices.IndexFunc(host.ModelFiles, func(f fixtures.ModelFile) bool { return f.SHA256 == "" })
	switch {
	case !e.machineKnown:
		return Warning, notInTime
	case e.settings.SkipModelHash:
		return Warning, "--skip-model-hash leaves them unread"
	case unread >= 0:
		return Warning, host.Reasons[fmt.Sprintf("model_files.%d.sha256", unread)]
	case len(host.ModelFiles) == 0 && e.untold() != "" && len(e.settings.ModelFile) == 0:
		return NotAsked, e.untold()
	case len(host.ModelFiles) == 0:
		return Warning, host.Reasons["model_files"]
	}
	var bytes int64
	fresh := 0
	for _, f := range host.ModelFiles {
		bytes += f.Bytes
		if f.SHA256 == facts.NotReadYet {
			fresh++
		}
	}
	answer := fmt.Sprintf("%d of %.1f GB", len(host.ModelFiles), float64(bytes)/1e9)
	if fresh > 0 {
		return OK, fmt.Sprintf("%s, %d to be read for a digest when the run begins", answer, fresh)
	}
	return OK, answer + ", digests known from an earlier run"
}

const notInTime = "this machine did not tell in time"

// The free space that a run wants. It keeps 1 to 2 MB; a server that heeds no budget can make it write much more.
const (
	spaceNeeded = 16 << 20
	spaceWanted = 256 << 20
)

func (e *evidence) disk() (Status, string) {
	p := e.place
	switch {
	case !e.placeKnown:
		return Failed, notInTime
	case p.err != nil:
		return Failed, p.err.Error()
	case !p.freeKnown:
		return OK, fmt.Sprintf("%q can be written in; its free space is not told on this system", p.dir)
	case p.free < spaceNeeded:
		return Failed, fmt.Sprintf("%d MB free in %q; a run wants %d", p.free>>20, p.dir, spaceNeeded>>20)
	case p.free < spaceWanted:
		return Warning, fmt.Sprintf("%d MB free in %q", p.free>>20, p.dir)
	}
	return OK, fmt.Sprintf("%d MB free in %q", p.free>>20, p.dir)
}

// coarsest is the coarsest step of the clock that figures in milliseconds can bear.
const coarsest = time.Millisecond

func (e *evidence) clock() (Status, string) {
	switch step := e.header.ClockResolution; {
	case step == 0:
		return Warning, "it did not move"
	case step > coarsest:
		return Warning, fmt.Sprintf("it steps in %v", step)
	default:
		return OK, fmt.Sprintf("it steps in %v", step)
	}
}

func (e *evidence) gpu() (Status, string) {
	host := e.header.Host
	switch {
	case !e.machineKnown:
		return Note, notInTime
	case e.form == "" && !host.EngineHere:
		return Note, "the engine is not on this machine, so that the result says nothing of its hardware"
	case len(host.GPUs) == 0:
		return Note, host.Reasons["gpus"]
	}
	names := make([]string, len(host.GPUs))
	for i, g := range host.GPUs {
		names[i] = g.Name
	}
	return OK, strings.Join(names, ", ")
}

func (e *evidence) dockerAnswers() (Status, string) {
	image := e.wantedImage()
	needed := e.form == engines.FormContainer
	switch d := e.docker; {
	case d.err != nil && needed:
		return Failed, d.err.Error()
	case d.version == "" && needed:
		return Failed, notInTime
	case d.err != nil:
		return Note, d.err.Error() + "; this run needs none"
	case d.version == "":
		return Note, notInTime
	case image != "" && !d.image && !e.settings.EnginePull:
		return Failed, fmt.Sprintf("the image %q is not on this machine", image)
	case needed && image == "":
		return Failed, "the recipe names no image: name it with --image"
	}
	return OK, "Docker answers, interface " + e.docker.version
}
