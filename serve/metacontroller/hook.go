package metacontroller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/serve/call"
)

// Limits of hooks.
const (
	defaultTimeout = 10 * time.Second
	largestBody    = 8 << 20
	// idleConnections is the number of connections to a hook's server that are kept open. With
	// the 2 of package http, several workers would connect for almost every call.
	idleConnections = 64
	// busyPause is the delay after a 429 without a readable Retry-After.
	busyPause = time.Second
	// credentialsAge is the time after which Secrets are read again.
	credentialsAge = 30 * time.Second
)

// busyError is the error of a hook that asks for a later retry.
type busyError struct{ delay time.Duration }

func (e busyError) Error() string { return fmt.Sprintf("the hook is busy; retry after %v", e.delay) }

// hook calls one webhook.
type hook struct {
	kind, version, url string
	strict             bool
	timeout            time.Duration
	connection         Connection
	api                client.Client
	base               http.RoundTripper // replaces the network in tests
	tags               *tags             // of all hooks

	mu     sync.Mutex
	client *http.Client
	header string
	read   time.Time // of the credentials
	etag   bool
	tagAge time.Duration
}

// newHook returns the hook of a declaration. Without a webhook, it returns nil. It reads the
// credentials once, to report mistakes.
func newHook(ctx context.Context, kind string, h *Hook, configs []EndpointConfig, api client.Client, base http.RoundTripper, kept *tags) (*hook, error) {
	if h == nil || h.Webhook == nil {
		return nil, nil
	}
	address, err := h.Webhook.Address()
	if err != nil {
		return nil, err
	}
	n := &hook{
		kind: kind, version: or(h.Version, V1), url: address, strict: h.strict(), timeout: defaultTimeout,
		connection: ConnectionOf(h.Webhook.Connection, address, configs), api: api, base: base, tags: kept,
	}
	if t := h.Webhook.Timeout; t != nil && t.Duration > 0 {
		n.timeout = t.Duration
	}
	if e := h.Webhook.Etag; e != nil && e.Enabled != nil && *e.Enabled {
		n.etag = true
		if e.CacheTimeoutSeconds != nil {
			n.tagAge = time.Duration(*e.CacheTimeoutSeconds) * time.Second
		}
	}
	if _, _, err := n.connect(ctx); err != nil {
		return nil, fmt.Errorf("can't resolve endpoint config for %s hook: %w", kind, err)
	}
	return n, nil
}

// connect returns the client and the header Authorization. It reads the Secrets again
// after a while, to notice a rotation.
func (h *hook) connect(ctx context.Context) (*http.Client, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client != nil && (h.connection == (Connection{}) || time.Since(h.read) < credentialsAge) {
		return h.client, h.header, nil
	}
	resolved, err := h.connection.resolve(ctx, h.api)
	if err != nil {
		return nil, "", err
	}
	h.close()
	transport := h.base
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = resolved.tls
		t.MaxIdleConnsPerHost = idleConnections
		transport = t
	}
	h.client, h.header, h.read = &http.Client{Transport: transport, Timeout: h.timeout}, resolved.header, time.Now()
	return h.client, h.header, nil
}

// close closes idle connections.
func (h *hook) close() {
	if h != nil && h.client != nil {
		h.client.CloseIdleConnections()
	}
}

// end closes idle connections and drops the stored responses. h may be nil.
func (h *hook) end() {
	h.close()
	if h != nil && h.etag {
		h.tags.dropAll(h)
	}
}

// call sends a request about a parent and decodes the response.
func (h *hook) call(ctx context.Context, parent *unstructured.Unstructured, request map[string]any, into any) error {
	body, err := call.Encode(request)
	if err != nil {
		return err
	}
	text, err := h.post(ctx, parent.GetKind()+"/"+identity(parent), body)
	if err != nil {
		return err
	}
	return Decode(text, into, h.kind, h.version, h.strict)
}

func (h *hook) post(ctx context.Context, key string, body []byte) ([]byte, error) {
	caller, header, err := h.connect(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if header != "" {
		request.Header.Set("Authorization", header)
	}
	stored, has := h.stored(key)
	if has {
		request.Header.Set("If-None-Match", stored.tag)
	}
	if err := h.allowed(ctx); err != nil {
		return nil, err
	}
	response, err := caller.Do(request)
	if err != nil {
		return nil, fmt.Errorf("http error: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, largestBody+1))
	if err != nil {
		return nil, fmt.Errorf("can't read response body: %w", err)
	}
	if len(text) > largestBody {
		return nil, fmt.Errorf("the response is larger than %d bytes", largestBody)
	}
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		if tag := response.Header.Get("ETag"); h.etag && tag != "" {
			h.tags.set(tagged{tagKey{h, key}, tag, text, time.Now()})
		}
		return text, nil
	case has && (code == http.StatusNotModified || code == http.StatusPreconditionFailed):
		return stored.body, nil
	case code == http.StatusTooManyRequests:
		return nil, busyError{RetryAfter(response.Header.Get("Retry-After"), time.Now())}
	default:
		return nil, fmt.Errorf("unsupported status code: %d body: %s", code, text[:min(len(text), 1024)])
	}
}

// errStandby is the error of a hook that is not called because this replica is not the leader.
var errStandby = errors.New("this replica does not hold the Lease")

// standbyPause is the delay after errStandby.
const standbyPause = time.Second

// allowed returns an error if the controller stops, or if the Lease of this replica has expired
// by the clock: the cancellation of the context may follow later, for example in a process that
// was suspended.
func (h *hook) allowed(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if gate, ok := h.api.(interface{ MayWrite() error }); ok {
		if err := gate.MayWrite(); err != nil {
			return fmt.Errorf("%w: %w", errStandby, err)
		}
	}
	return nil
}

func (h *hook) stored(key string) (tagged, bool) {
	if !h.etag {
		return tagged{}, false
	}
	return h.tags.get(tagKey{h, key}, h.tagAge)
}

// forget drops the stored response about a parent that is gone. h may be nil.
func (h *hook) forget(key string) {
	if h != nil && h.etag {
		h.tags.drop(tagKey{h, key})
	}
}

// RetryAfter returns the delay that a header Retry-After asks for: seconds, or a date. A
// missing or unreadable header means a second.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return min(time.Duration(min(seconds, math.MaxInt32))*time.Second, longestDelay)
	}
	if date, err := time.Parse(time.RFC1123, header); err == nil {
		return max(min(date.Sub(now), longestDelay).Truncate(time.Second)+time.Second, 0)
	}
	return busyPause
}

// busy returns the delay of a hook that is busy.
func busy(err error) (time.Duration, bool) {
	var e busyError
	ok := errors.As(err, &e)
	return e.delay, ok
}
