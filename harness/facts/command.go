package facts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// runner runs a command and returns what it wrote to its standard output. The error is errMissing when there is no
// such command.
type runner func(ctx context.Context, name string, args ...string) ([]byte, error)

var errMissing = errors.New("not installed")

const (
	// commandTimeout bounds a vendor's tool. One whose driver hangs does not come back at all.
	commandTimeout = 2 * time.Second
	maxOutput      = 1 << 20 // bytes
)

func runCommand(ctx context.Context, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, errMissing
	}
	bounded, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = commandTimeout / 4 // a child of it that holds the pipe must not hold us
	var out head
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if bounded.Err() != nil {
			return nil, fmt.Errorf("no answer within %v", commandTimeout)
		}
		return nil, err
	}
	return out.kept.Bytes(), nil
}

// head keeps the first maxOutput bytes and drops the rest. The buffer is no embedded one: its ReadFrom would be found
// and would take everything.
type head struct{ kept bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), maxOutput-h.kept.Len())])
	return len(p), nil
}
