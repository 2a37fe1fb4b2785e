//go:build unix

package load

import (
	"net"
	"os"
	"syscall"
)

// sockets makes two connected sockets.
func sockets() (net.Conn, net.Conn, error) {
	syscall.ForkLock.RLock() // no child is started that would inherit them
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	a, err := conn(pair[0])
	if err != nil {
		syscall.Close(pair[1])
		return nil, nil, err
	}
	b, err := conn(pair[1])
	if err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// conn takes a socket over as a connection of the net package, whose reads wait with all others of the program.
func conn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "heartbeat")
	defer f.Close() // FileConn has a copy
	return net.FileConn(f)
}
