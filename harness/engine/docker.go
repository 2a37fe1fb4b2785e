package engine

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// docker is the connection to a Docker Engine.
type docker struct {
	provider *testcontainers.DockerProvider
	api      client.APIClient
	// address is the Docker Engine's; host is where its containers' ports are reached, and bind the address that they are
	// published on there.
	address, host, bind string
}

const (
	ryukVariable = "TESTCONTAINERS_RYUK_DISABLED"
	// ryukImage is the one that testcontainers-go 0.45 would pull (its internal/config, ReaperDefaultImage).
	ryukImage    = "testcontainers/ryuk:0.14.0"
	hostVariable = "TESTCONTAINERS_HOST_OVERRIDE"
)

// tameLibrary silences the library, as nothing here prints, and turns its own reaper off where the reaper's image is not on
// this machine and nobody has decided otherwise: nothing may be pulled, and the watchdog does the reaper's work.
var tameLibrary = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	if os.Getenv(ryukVariable) != "" {
		return
	}
	api, err := client.New(client.FromEnv)
	if err == nil {
		defer api.Close()
		if _, err = api.ImageInspect(context.Background(), ryukImage); err == nil {
			return
		}
	}
	os.Setenv(ryukVariable, "true")
})

func connectDocker(ctx context.Context) (*docker, error) {
	tameLibrary()
	const want = "start Docker, or say where it is with DOCKER_HOST"
	p, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	if err != nil {
		return nil, fmt.Errorf("no Docker Engine can be had: %s (%w)", want, err)
	}
	d := &docker{provider: p, api: p.Client(), address: p.Client().DaemonHost(), host: "127.0.0.1", bind: "127.0.0.1"}
	if named := os.Getenv(client.EnvOverrideHost); named != "" && named != d.address {
		// The library tries other addresses where this one does not answer: an engine somewhere else is not the one meant.
		return nil, fmt.Errorf("no Docker Engine answers at %q, which DOCKER_HOST names: %s", named, want)
	}
	if _, err := d.api.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("the Docker Engine at %q does not answer: %s (%w)", d.address, want, err)
	}
	// The engine of a machine publishes on its loopback address, as an engine mostly asks for no key. One elsewhere cannot.
	if u, err := url.Parse(d.address); err == nil && u.Hostname() != "" && u.Scheme != "unix" && u.Scheme != "npipe" {
		d.host, d.bind = u.Hostname(), "0.0.0.0"
	}
	if host := os.Getenv(hostVariable); host != "" {
		d.host = host
		if host != "127.0.0.1" && host != "localhost" {
			d.bind = "0.0.0.0"
		}
	}
	return d, nil
}

// local says whether the Docker Engine's ports are this machine's own.
func (d *docker) local() bool { return d.bind == "127.0.0.1" }
