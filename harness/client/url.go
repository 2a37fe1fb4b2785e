package client

import (
	"fmt"
	"net/url"
	"strings"
)

// join joins a server's base URL and a path from the server's root, such as "/v1/chat/completions" or "/health". The base
// may end in a slash, and in the "/v1" that other clients want in their setting: paths name it themselves. The path may
// hold a query.
func join(base *url.URL, path string) (*url.URL, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("join URL: want a path that starts with a slash, got %q", path)
	}
	root := strings.TrimRight(base.EscapedPath(), "/")
	root = strings.TrimRight(strings.TrimSuffix(root, "/v1"), "/")
	u, err := url.Parse(base.Scheme + "://" + base.Host + root + path)
	if err != nil {
		return nil, fmt.Errorf("join URL: path %q: not a valid path", path)
	}
	return u, nil
}
