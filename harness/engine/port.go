package engine

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// freePort is the port that the operator chose, if nothing listens there, else any that is free now.
func freePort(ctx context.Context, chosen int) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(chosen)))
	if err != nil && chosen != 0 {
		return 0, fmt.Errorf("port %d is taken: choose another with --engine-port, or leave it out for a free one (%w)", chosen, err)
	}
	if err != nil {
		return 0, fmt.Errorf("no free port is to be had: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
