package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"plumbline/fixtures/engines"
)

// docker is what the Docker Engine on this machine answers.
type docker struct {
	version string // of its interface, "" when it does not answer
	err     error
	// image says whether the image that the run would start is there; only asked for a container.
	image bool
}

const (
	dockerSocket  = "/var/run/docker.sock"
	dockerTimeout = time.Second
)

// wantedImage is the image that the run would start a container from, "" for none.
func (e *evidence) wantedImage() string {
	name, form, started := e.settings.Started()
	if !started || form != engines.FormContainer {
		return ""
	}
	if e.settings.Image != "" {
		return e.settings.Image
	}
	r, err := engines.Load(name)
	if err != nil {
		return ""
	}
	return r.Container.Image.Value
}

// askDocker asks the Docker Engine for a sign of life, GET /_ping, and for an image, GET /images/NAME/json
// (docs.docker.com, Docker Engine API), where DOCKER_HOST or the usual socket leads.
func askDocker(ctx context.Context, image string) docker {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	network, address := "unix", dockerSocket
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		u, err := url.Parse(host)
		switch {
		case err == nil && u.Scheme == "unix":
			address = u.Path
		case err == nil && u.Scheme == "tcp" && os.Getenv("DOCKER_TLS_VERIFY") == "":
			network, address = "tcp", u.Host
		default:
			return docker{err: fmt.Errorf("DOCKER_HOST names neither a socket nor a plain address: it is not asked")}
		}
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}}
	get := func(path string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker"+path, nil)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("nothing answers at %s", address)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)) // the head says all that is asked for
		response.Body.Close()
		return response, nil
	}
	ping, err := get("/_ping")
	if err != nil {
		return docker{err: err}
	}
	if ping.StatusCode != http.StatusOK {
		return docker{err: fmt.Errorf("what answers at %s is no Docker Engine (status %d)", address, ping.StatusCode)}
	}
	d := docker{version: strings.TrimSpace(ping.Header.Get("Api-Version"))}
	if d.version == "" {
		d.version = "unknown"
	}
	if image != "" {
		// A name has slashes of its own, which belong to the path.
		found, err := get("/images/" + strings.ReplaceAll(url.PathEscape(image), "%2F", "/") + "/json")
		d.image = err == nil && found.StatusCode == http.StatusOK
	}
	return d
}
