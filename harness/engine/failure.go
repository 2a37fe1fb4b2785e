package engine

import (
	"errors"
	"fmt"
	"strings"

	"plumbline/fixtures"
)

// StartError says why an engine could not be started, or was never ready.
type StartError struct {
	// Engine is its name in the settings.
	Engine string
	// Waited is what was waited for; "" when it never ran.
	Waited string
	// Text says in one sentence what happened and what would be right.
	Text string
	// Exit is how it ended; nil when it never ran.
	Exit *fixtures.EngineExit
	// Log is the file with all that it wrote, Tail the end of that; "" and none when it wrote nothing.
	Log  string
	Tail []string
	Err  error // the cause; nil where there is none beneath
}

// Brief is the reason in one line.
func (e *StartError) Brief() string {
	text := fmt.Sprintf("start engine %q: %s", e.Engine, e.Text)
	if e.Waited != "" {
		text += ", while the suite waited for " + e.Waited
	}
	return text
}

// Error implements error: the reason, and the end of the engine's log.
func (e *StartError) Error() string { return e.Brief() + tail(e.Log, e.Tail) }

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

// also is an error with what went wrong in cleaning up after it, if anything did.
func also(err, after error) error {
	if after == nil {
		return err
	}
	return errors.Join(err, after)
}

// diedError says that an engine ended during the run.
type diedError struct {
	url  string
	exit fixtures.EngineExit
	log  string
	tail []string
}

func (e *diedError) Error() string {
	return fmt.Sprintf("the engine at %q ended during the run: %s", e.url, describe(e.exit)) + tail(e.log, e.tail)
}

// describe puts an exit into words.
func describe(x fixtures.EngineExit) string {
	switch {
	case x.OutOfMemory:
		return "it was killed because it used more memory than it may"
	case x.Signal != "":
		return "it was ended by the signal " + x.Signal
	case x.Code == nil:
		return "how it ended is not known: " + x.Reason
	}
	return fmt.Sprintf("it exited with code %d", *x.Code)
}

func tail(log string, lines []string) string {
	if log == "" {
		return ""
	}
	if len(lines) == 0 {
		return fmt.Sprintf("\nit wrote nothing (%s)", log)
	}
	return fmt.Sprintf("\nits last %d lines, of %s:\n  %s", len(lines), log, strings.Join(lines, "\n  "))
}
