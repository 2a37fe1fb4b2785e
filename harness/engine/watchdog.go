package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// watchdogVariable, when it is in the environment, makes a program that holds this package the watchdog of another one.
const watchdogVariable = "PLUMBLINE_ENGINE_WATCHDOG"

func init() {
	if os.Getenv(watchdogVariable) != "" {
		watch(os.Stdin)
		os.Exit(0)
	}
}

// watchdog is a second process of this program that outlives it. It holds the reading end of a pipe: when that ends before
// the engine was stopped, this program is gone, killed perhaps, and the watchdog ends what was started. Neither a handler of
// signals nor a deferred call could do so after SIGKILL, and a signal at the parent's death reaches no grandchild.
type watchdog struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// What a watchdog is told, one a line: a word, and for the first three a value.
const (
	tellGroup  = "group"  // kill the process group of this number
	tellDocker = "docker" // the address of the Docker Engine that has the containers
	tellLabel  = "label"  // remove the containers with this label
	tellDone   = "done"   // all is stopped: end
)

func startWatchdog() (*watchdog, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), watchdogVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's Ctrl-C is not for it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, in: in}, nil
}

func (w *watchdog) tell(word, value string) error {
	if _, err := fmt.Fprintln(w.in, word, value); err != nil {
		return fmt.Errorf("tell watchdog: %w", err)
	}
	return nil
}

// release ends the watchdog without a bite.
func (w *watchdog) release() error {
	err := w.tell(tellDone, "")
	return errors.Join(err, w.in.Close(), w.cmd.Wait())
}

// watch is the watchdog's whole life.
func watch(in io.Reader) {
	var groups []int
	var labels []string
	host := ""
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, value, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case tellGroup:
			if pid, err := strconv.Atoi(value); err == nil && pid > 1 {
				groups = append(groups, pid)
			}
		case tellDocker:
			host = value
		case tellLabel:
			labels = append(labels, value)
		case tellDone:
			return
		}
	}
	for _, g := range groups {
		_ = syscall.Kill(-g, syscall.SIGKILL)
	}
	for _, l := range labels {
		removeLabelled(host, l)
	}
}

// A container may be on its way when its maker is killed, so the watchdog looks for this long.
const (
	removeFor   = 30 * time.Second
	removeEvery = 250 * time.Millisecond
)

func removeLabelled(host, label string) {
	ctx, cancel := context.WithTimeout(context.Background(), removeFor)
	defer cancel()
	docker, err := client.New(client.FromEnv, client.WithHost(host))
	if err != nil {
		return // nobody is left to hear of it
	}
	defer docker.Close()
	removed := false
	for ctx.Err() == nil {
		ids, err := labelled(ctx, docker, label)
		if err == nil && len(ids) == 0 && removed {
			return
		}
		for _, id := range ids {
			_, err := docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			removed = removed || err == nil
		}
		time.Sleep(removeEvery)
	}
}
