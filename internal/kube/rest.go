package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// RESTConfig returns a configuration for other clients of the same cluster, such as
// those that users create in handlers. They use our credentials, user agent, transport
// wrappers, limit of requests in flight (instead of client-go's rate limits) and write
// gate.
//
// Such clients follow [Client.Use], and wait while the credentials are rejected.
// Clients that upgrade the connection, for example to run commands in pods, do not.
// Clients with other credentials are only limited and gated.
func (c *Client) RESTConfig() *rest.Config {
	made := c.shared.conns.Load()
	cfg := rest.CopyConfig(made.cfg)
	cfg.QPS = -1
	cfg.RateLimiter = nil
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &guest{rt, c, made} })
	return cfg
}

// guest sends the requests of clients made from RESTConfig. client-go's wrappers are
// around it, so the headers already have the credentials.
type guest struct {
	http.RoundTripper // on client-go's connections
	client            *Client
	made              *conns // the connections that the configuration was made from
}

func (g *guest) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.client.opts.DryRun && writes(req.Method) {
		req = req.Clone(req.Context())
		req.URL.RawQuery = dryRun(req.URL.Query()).Encode()
	}
	if !g.made.madeHeaders(req) || !plain(g.RoundTripper, g.made) {
		return g.send(g.RoundTripper, req)
	}
	var auth authWait
	for body := req; ; {
		conns, err := g.client.admitted(req.Context())
		if err != nil {
			closeBody(body)
			return nil, err
		}
		began := time.Now()
		var resp *http.Response
		if conns == g.made && auth.conns == nil {
			resp, err = g.send(g.RoundTripper, body)
		} else {
			// The wrappers around us still have the old credentials.
			resp, err = g.send(conns.viaFor(req), g.redirect(body, conns))
		}
		if err != nil {
			return nil, err
		}
		g.client.noteAnswer(conns, outcome{code: resp.StatusCode, began: began})
		if resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		refusal := statusError(&call{method: req.Method}, resp)
		resp.Body.Close()
		if err := auth.refused(req.Context(), g.client, conns, requestName{req}, refusal); err != nil {
			return nil, err
		}
		body = req.Clone(req.Context())
		if req.GetBody != nil {
			if body.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// send makes one attempt, subject to the limit and the gate. It releases the slot when
// the response starts, because the end of reading cannot be observed.
func (g *guest) send(via http.RoundTripper, req *http.Request) (*http.Response, error) {
	var o outcome
	if !endless(req) {
		slot, err := g.client.limit.acquire(req.Context(), tenantOf(req.Context(), namespaceOf(req.URL.Path)))
		if err != nil {
			closeBody(req)
			return nil, err
		}
		defer func() { g.client.limit.release(slot, o.learnt(req.URL.Path)) }()
	}
	until, err := g.client.passGate(req.Method)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	var shown *traffic
	if g.client.logsTraffic(req.Context()) {
		shown = g.client.newTraffic(req.Method, req.URL.Path)
	}
	resp, err := sendUntil(via, req, until)
	if o.err = err; err == nil {
		o.code = resp.StatusCode
	}
	if shown != nil {
		shown.request(req.Context(), o, endless(req))
		if err == nil && endless(req) {
			shown.closeLogged(resp)
		}
	}
	return resp, err
}

// sendUntil cancels the request if the response does not start by the given time.
func sendUntil(via http.RoundTripper, req *http.Request, until time.Time) (*http.Response, error) {
	if until.IsZero() {
		return via.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := closeAt(until, cancel)
	resp, err := via.RoundTrip(req.WithContext(ctx))
	stop()
	if err != nil {
		if gated, ok := context.Cause(ctx).(*GatedError); ok {
			err = &UnknownOutcomeError{Err: gated}
		}
		cancel(nil)
		return nil, err
	}
	if _, both := resp.Body.(io.Writer); both {
		// The connection was upgraded; its new owner closes it.
		context.AfterFunc(req.Context(), func() { cancel(nil) })
		return resp, nil
	}
	resp.Body = &endingBody{resp.Body, cancel}
	return resp, nil
}

// endingBody cancels the request's context when the body is closed.
type endingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *endingBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// redirect returns a copy of the request for the server of the given connections,
// without credentials. The connections add theirs.
func (g *guest) redirect(req *http.Request, to *conns) *http.Request {
	r := req.Clone(req.Context())
	r.Header.Del("Authorization")
	r.URL.Scheme, r.URL.Host, r.Host = to.base.Scheme, to.base.Host, to.base.Host
	if from, to := strings.TrimRight(g.made.base.Path, "/"), strings.TrimRight(to.base.Path, "/"); from != to {
		r.URL.Path, r.URL.RawPath = to+strings.TrimPrefix(r.URL.Path, from), ""
	}
	return r
}

func (c *conns) viaFor(req *http.Request) http.RoundTripper {
	if req.URL.Query().Has("watch") {
		return c.watches
	}
	return c.requests
}

// madeHeaders reports whether the credentials in the headers are those of the
// configuration, and not others set by the user.
func (c *conns) madeHeaders(req *http.Request) bool {
	switch user, password, basic := req.BasicAuth(); {
	case c.cfg.BearerTokenFile != "", c.cfg.ExecProvider != nil, c.cfg.AuthProvider != nil:
		return true
	case c.cfg.BearerToken != "":
		return req.Header.Get("Authorization") == "Bearer "+c.cfg.BearerToken
	case c.cfg.Username != "":
		return basic && user == c.cfg.Username && password == c.cfg.Password
	}
	return req.Header.Get("Authorization") == ""
}

// plain reports whether rt is ordinary HTTP, which our connections can replace.
func plain(rt http.RoundTripper, made *conns) bool {
	for {
		if _, ok := rt.(*http.Transport); ok || made.cfg.Transport != nil {
			return true
		}
		within, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			return false
		}
		rt = within.WrappedRoundTripper()
	}
}

// endless reports whether the response to the request has no natural end.
func endless(req *http.Request) bool {
	q := req.URL.Query()
	return q.Has("watch") || q.Has("follow") || req.Header.Get("Upgrade") != ""
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// WrappedRoundTripper returns the inner transport. client-go calls it.
func (g *guest) WrappedRoundTripper() http.RoundTripper { return g.RoundTripper }

type requestName struct{ *http.Request }

func (r requestName) String() string { return fmt.Sprintf("%s %s", r.Method, r.URL.Path) }

// namespaceOf returns the namespace in the path of a request, or "".
func namespaceOf(path string) string {
	_, after, _ := strings.Cut(path, "/namespaces/")
	namespace, _, _ := strings.Cut(after, "/")
	return namespace
}
