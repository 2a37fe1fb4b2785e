package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"plumbline/fixtures"
	"plumbline/fixtures/engines"
	"plumbline/harness/settings"
)

// process is an engine that runs as a program of this machine, in a process group of its own.
type process struct {
	started
	built  string        // the program, where it was built for this run
	copied chan struct{} // closed when its log has been read to the end
	output *os.File      // the reading end of its output
}

// process starts the recipe's program.
func (o *order) process(ctx context.Context) (running, error) {
	recipe := o.recipe.Process
	port, err := freePort(ctx, o.set.EnginePort)
	if err != nil {
		return nil, o.fail(err, "%v", err)
	}
	o.values[engines.Port] = strconv.Itoa(port)
	words, err := o.words(recipe.Arguments)
	if err != nil {
		return nil, err
	}
	program, built, err := o.program(ctx, recipe)
	if err != nil {
		return nil, err
	}
	env := o.environment(recipe.Environment)
	p := &process{built: built, copied: make(chan struct{}), started: started{
		kind: KindProcess, url: "http://127.0.0.1:" + strconv.Itoa(port), order: o, ended: make(chan struct{}),
		start: fixtures.EngineStart{Recipe: o.recipe.Name, Command: append([]string{program}, words...),
			Environment: slices.Sorted(maps.Keys(env)), Log: LogName},
	}}
	if err := p.launch(program, words, env); err != nil {
		return nil, also(o.fail(err, "%q cannot be run: %v", program, err), p.removeBuilt())
	}
	return p, nil
}

// program finds the engine's program, or builds it where it is one of this project and its source tree is here.
func (o *order) program(ctx context.Context, recipe *engines.Process) (path, built string, err error) {
	name := recipe.Command.Value
	if o.set.EngineCommand != "" {
		name = o.set.EngineCommand
	}
	if name == "" {
		return "", "", o.fail(nil, "its recipe names no program: %s; name it with --command", recipe.Command.Reason)
	}
	if path, err = exec.LookPath(name); err == nil {
		path, err = filepath.Abs(path)
		return path, "", err
	}
	root, inTree := settings.SourceTree()
	if recipe.Build == nil || o.set.EngineCommand != "" || !inTree {
		return "", "", o.fail(err, "there is no program %q to run: install it, or name it with --command", name)
	}
	dir, err := os.MkdirTemp("", "plumbline-engine")
	if err != nil {
		return "", "", o.fail(err, "%v", err)
	}
	path = filepath.Join(dir, filepath.Base(recipe.Build.Binary))
	if err := goBuild(ctx, root, recipe.Build.Package, path, nil); err != nil {
		return "", "", also(o.fail(err, "%v", err), os.RemoveAll(dir))
	}
	return path, path, nil
}

// goBuild builds a program of this project, with more of an environment and flags.
func goBuild(ctx context.Context, root, pkg, to string, env []string, flags ...string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", to}, flags, []string{pkg})...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q: %w\n%s", pkg, err, out)
	}
	return nil
}

// launch starts the program, its watchdog first.
func (p *process) launch(program string, words []string, env map[string]string) error {
	var err error
	if p.dog, err = startWatchdog(); err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return errors.Join(err, p.dog.release())
	}
	p.output = read
	cmd := exec.Command(program, words...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, settings.EnvPrefix) })
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	cmd.Stdout, cmd.Stderr = write, write
	cmd.SysProcAttr = ownGroup()
	begun := make(chan error)
	p.order.began = time.Now()
	go p.live(cmd, begun)
	err = <-begun
	write.Close() // the engine has its own
	if err != nil {
		return errors.Join(err, read.Close(), p.dog.release())
	}
	p.start.PID = cmd.Process.Pid
	go func() {
		defer close(p.copied)
		_, _ = io.Copy(p.order.log, read)
	}()
	if err := p.dog.tell(tellGroup, strconv.Itoa(cmd.Process.Pid)); err != nil {
		_, stopErr := p.Stop(context.Background())
		return errors.Join(err, stopErr)
	}
	return nil
}

// live starts the program and waits for its end on one thread of the system, which it keeps: the signal at the parent's
// death is sent when the thread ends that made the child.
func (p *process) live(cmd *exec.Cmd, begun chan<- error) {
	runtime.LockOSThread()
	err := cmd.Start()
	begun <- err
	if err != nil {
		return
	}
	err = cmd.Wait()
	// What the program started itself is of no use without it, and must not stay.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	p.end(exitOf(cmd.ProcessState, err))
}

func exitOf(state *os.ProcessState, err error) fixtures.EngineExit {
	if state == nil {
		return fixtures.EngineExit{Reason: fmt.Sprintf("it could not be waited for: %v", err)}
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fixtures.EngineExit{Signal: status.Signal().String(), Reason: "it was ended by a signal"}
	}
	code := state.ExitCode()
	return fixtures.EngineExit{Code: &code}
}

const (
	// grace is how long an engine has to end in order before it is killed: it may wait for a request to end.
	grace = 10 * time.Second
	// drain is how long the rest of a log may take once the engine is gone.
	drain = 2 * time.Second
)

// Stop asks the whole group to end, and kills it when it has not within the grace or when ctx ends.
func (p *process) Stop(ctx context.Context) (*fixtures.EngineExit, error) {
	if p.stopped {
		return &p.exit, nil
	}
	p.stopped = true
	p.stopping.Store(true)
	group := -p.start.PID
	select {
	case <-p.ended: // the number may be another's by now
	default:
		_ = syscall.Kill(group, syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-ctx.Done():
		case <-time.After(grace):
		}
		select {
		case <-p.ended:
		default:
			_ = syscall.Kill(group, syscall.SIGKILL)
			<-p.ended
		}
	}
	select {
	case <-p.copied:
	case <-time.After(drain): // something that left the group holds the output
		p.output.SetReadDeadline(time.Now())
		<-p.copied
	}
	return &p.exit, errors.Join(p.output.Close(), p.close(), p.dog.release(), p.removeBuilt())
}

func (p *process) removeBuilt() error {
	if p.built == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(p.built))
}
