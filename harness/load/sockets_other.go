//go:build !unix

package load

import (
	"fmt"
	"net"
)

// sockets makes two connected sockets, by loopback TCP.
func sockets() (net.Conn, net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	b, err := l.Accept()
	if err != nil {
		a.Close()
		return nil, nil, err
	}
	if from := b.RemoteAddr().String(); from != a.LocalAddr().String() { // the port is open to every program here
		a.Close()
		b.Close()
		return nil, nil, fmt.Errorf("accept on loopback: want the connection from %q, got one from %q", a.LocalAddr(), from)
	}
	return a, b, nil
}
