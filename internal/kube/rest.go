package kube

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// RESTConfig configures other clients of the same cluster, such as those that
// users make in their handlers: with our credentials, user agent and transport
// wrappers, and under our limit of requests in flight instead of client-go's
// limits of rates. It does not follow later changes by [Client.Use].
func (c *Client) RESTConfig() *rest.Config {
	cfg := rest.CopyConfig(c.shared.conns.Load().cfg)
	cfg.QPS = -1
	cfg.RateLimiter = nil
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &limited{rt, c.shared.limit} })
	return cfg
}

// limited makes the requests of others wait for our slots. They are given back
// when the answer begins, as nobody knows when it is read.
type limited struct {
	http.RoundTripper
	limit *limiter
}

func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if endless(req) {
		return l.RoundTripper.RoundTrip(req)
	}
	slot, err := l.limit.acquire(req.Context())
	if err != nil {
		return nil, err
	}
	var o outcome
	defer func() { l.limit.release(slot, o.learnt()) }()
	resp, err := l.RoundTripper.RoundTrip(req)
	if o.err = err; err == nil {
		o.code = resp.StatusCode
	}
	return resp, err
}

// endless tells requests whose answer takes as long as somebody wants it.
func endless(req *http.Request) bool {
	q := req.URL.Query()
	return q.Has("watch") || q.Has("follow") || req.Header.Get("Upgrade") != ""
}

// WrappedRoundTripper lets client-go find the transport within.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.RoundTripper }
