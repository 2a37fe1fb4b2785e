package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"plumbline/fixtures"
	"plumbline/fixtures/engines"
	"plumbline/harness/settings"
)

// order is an engine to start: the recipe with what the settings add to it.
type order struct {
	name   string // the engine's, in the settings
	set    *settings.Settings
	recipe *engines.Recipe
	run    Run
	header http.Header // what authorizes a request
	values map[string]string
	log    *logFile
	began  time.Time // when the program or the container was started; building an image comes before
}

// started is what a process and a container have in common.
type started struct {
	kind, url string
	start     fixtures.EngineStart
	order     *order
	dog       *watchdog
	// ended is closed once it ended; exit is how, and set before.
	ended    chan struct{}
	exit     fixtures.EngineExit
	stopping atomic.Bool
	stopped  bool
}

func (s *started) Kind() string                   { return s.kind }
func (s *started) URL() string                    { return s.url }
func (s *started) Started() *fixtures.EngineStart { return &s.start }

func (s *started) Ended() <-chan struct{} { return s.ended }

func (s *started) Died() error {
	select {
	case <-s.ended:
		if s.exit.ByItself {
			return &diedError{url: s.url, exit: s.exit, log: s.order.logPath(), tail: s.order.log.tail()}
		}
	default:
	}
	return nil
}

// end notes how the engine ended.
func (s *started) end(x fixtures.EngineExit) {
	x.ByItself = !s.stopping.Load()
	s.exit = x
	close(s.ended)
}

// running is a process or a container that has been started and may not be ready yet.
type running interface {
	Engine
	common() *started
}

func (s *started) common() *started { return s }

func startFromRecipe(ctx context.Context, s *settings.Settings, run Run) (Engine, error) {
	name, form, _ := s.Started()
	o := &order{name: s.EngineName(), set: s, run: run}
	var err error
	if o.recipe, err = engines.Load(name); err != nil {
		return nil, o.fail(err, "%v", err)
	}
	key, err := s.Credential()
	if err != nil {
		return nil, o.fail(err, "%v", err)
	}
	o.header = Authorize(key)
	o.values = o.variables(key)
	if o.log, err = createLog(o.logPath(), newScrubber(o.header)); err != nil {
		return nil, o.fail(err, "%v", err)
	}
	launch := o.process
	if form == engines.FormContainer {
		launch = o.container
	}
	e, err := launch(ctx)
	if err != nil {
		return nil, also(err, o.log.Close())
	}
	if err := o.await(ctx, e); err != nil {
		return nil, err
	}
	return e, nil
}

// stopTimeout bounds the end of an engine that was never ready.
const stopTimeout = 30 * time.Second

// await waits until the engine serves, and ends it when it does not.
func (o *order) await(ctx context.Context, e running) error {
	c := e.common()
	timeout := time.Duration(o.recipe.Ready.Timeout.Value)
	if o.set.EngineStartTimeout > 0 {
		timeout = o.set.EngineStartTimeout
	}
	ready := whenServing(o.recipe.Ready.Path.Value, o.set.Model, timeout)
	waited, err := ready.wait(ctx, newCaller(c.url, o.header, OptionsFor(o.set)), c.ended)
	if err == nil {
		c.start.ReadyAfter = time.Since(o.began)
		return nil
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	exit, stopErr := e.Stop(stop)
	text := err.Error()
	if errors.Is(err, errEnded) && exit != nil {
		text = fmt.Sprintf("%s, %v after its start", describe(*exit), time.Since(o.began).Round(time.Millisecond))
	}
	failed := &StartError{Engine: o.name, Waited: waited, Text: text, Exit: exit, Log: o.logPath(), Tail: o.log.tail(), Err: err}
	return also(failed, stopErr)
}

// fail says that the engine never ran.
func (o *order) fail(cause error, format string, args ...any) *StartError {
	return &StartError{Engine: o.name, Text: fmt.Sprintf(format, args...), Err: cause}
}

func (o *order) logPath() string { return filepath.Join(o.run.Dir, LogName) }

// variables are the values of the recipe's variables, but for those that only the form knows.
func (o *order) variables(key settings.Secret) map[string]string {
	v := map[string]string{engines.Context: strconv.Itoa(o.recipe.Context.Value)}
	slots := max(o.set.ServerCapacity, 1)
	v[engines.ContextTotal] = strconv.Itoa(o.recipe.Context.Value * slots)
	if o.set.ServerCapacity > 0 {
		v[engines.Slots] = strconv.Itoa(slots)
	}
	if o.set.Model != "" {
		v[engines.ModelName] = o.set.Model
	}
	if !key.Empty() {
		v[engines.Key] = key.Reveal()
	}
	switch {
	case len(o.set.ModelFile) == 0 && o.recipe.Model.Value == engines.ModelFolder && o.set.Model != "":
		v[engines.Model] = o.set.Model
	case len(o.set.ModelFile) > 0 && o.recipe.Model.Value == engines.ModelFile:
		v[engines.Model] = o.set.ModelFile[0]
	case len(o.set.ModelFile) > 0 && o.recipe.Model.Value == engines.ModelFolder:
		v[engines.Model] = filepath.Dir(o.set.ModelFile[0])
	}
	return v
}

// words are the engine's arguments: the recipe's, then the operator's.
func (o *order) words(recipe []engines.Arguments) ([]string, error) {
	words, err := engines.Words(slices.Concat(recipe, []engines.Arguments{{Words: o.set.EngineArg}}), o.values)
	if err == nil {
		return words, nil
	}
	if _, has := o.values[engines.Model]; !has && o.recipe.Model.Value != engines.ModelOwn {
		hint := "give its file with --model-file"
		if o.recipe.Model.Value == engines.ModelFolder {
			hint += ", or its name with --model"
		}
		return nil, o.fail(err, "it needs a model: %s", hint)
	}
	return nil, o.fail(err, "%v", err)
}

// environment are the recipe's variables whose values are known.
func (o *order) environment(recipe []engines.Variable) map[string]string {
	env := map[string]string{}
	for _, v := range recipe {
		if value, ok := engines.Fill(v.Value, o.values); ok {
			env[v.Name] = value
		}
	}
	return env
}

// close ends the log, and removes it where nobody wants it: then the engine was ready, and ended because it was told to.
func (s *started) close() error {
	err := s.order.log.Close()
	if !s.order.set.KeepEngineLog && s.start.ReadyAfter > 0 && !s.exit.ByItself {
		return errors.Join(err, os.Remove(s.order.logPath()))
	}
	return err
}
