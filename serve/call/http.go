package call

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// HTTP calls a hook by POST requests.
type HTTP struct {
	options Options
	client  *http.Client
}

// NewHTTP returns a caller of an HTTP hook. It reads the certificates of the options.
func NewHTTP(o Options) (*HTTP, error) {
	h := o.Call.HTTP
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if h.CAFile != "" {
		text, err := os.ReadFile(o.path(h.CAFile))
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("caFile: %s has no certificate", h.CAFile)
		}
	}
	if h.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.path(h.CertFile), o.path(h.KeyFile)); err != nil {
			return nil, fmt.Errorf("certFile: %w", err)
		}
		// The files are read for each handshake, so a rotated certificate is used.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.path(h.CertFile), o.path(h.KeyFile))
			return &pair, err
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	transport.MaxIdleConnsPerHost = 64
	transport.MaxResponseHeaderBytes = 64 << 10
	return &HTTP{options: o, client: &http.Client{Transport: transport}}, nil
}

func (o *Options) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(o.Dir, name)
}

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Call sends one POST request.
func (h *HTTP) Call(ctx context.Context, r *Request) (Output, error) {
	ctx, cancel := limited(ctx, h.options.timeout(DefaultHTTPTimeout))
	defer cancel()
	out, err := h.post(ctx, r)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

func (h *HTTP) post(ctx context.Context, r *Request) (Output, error) {
	input, release, err := h.options.input(ctx, r, r.Input)
	if err != nil {
		return Output{}, err
	}
	defer release()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.options.Call.HTTP.URL, bytes.NewReader(input))
	if err != nil {
		return Output{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	token, err := h.token(ctx, r)
	if err != nil {
		return Output{}, fmt.Errorf("read the token of the hook: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return Output{}, err
	}
	defer resp.Body.Close()
	text, over, err := readLimited(resp.Body, h.options.output())
	switch {
	case over:
		return Output{}, fmt.Errorf("the response has more than %d bytes", h.options.output())
	case resp.StatusCode != http.StatusOK:
		return Output{}, statusError(resp, text, time.Now())
	case err != nil:
		return Output{}, fmt.Errorf("read the response: %w", err)
	}
	return ParseOutput(text)
}

func (h *HTTP) token(ctx context.Context, r *Request) (string, error) {
	if file := h.options.Call.HTTP.TokenFile; file != "" {
		text, err := os.ReadFile(h.options.path(file))
		return strings.TrimSpace(string(text)), err
	}
	if h.options.Call.HTTP.TokenSecret == nil {
		return "", nil
	}
	if r.Token == nil {
		return "", errors.New("there is no cluster to read the Secret from")
	}
	return r.Token(ctx)
}

// statusError returns the error of a response that is not 200.
func statusError(resp *http.Response, text []byte, now time.Time) error {
	err := fmt.Errorf("the hook responded with %s: %s", resp.Status, cut(strings.TrimSpace(string(text)), 200))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		failure := &Error{Err: err}
		if after, ok := RetryAfter(resp.Header.Get("Retry-After"), now); ok {
			failure.After = &after
		}
		return failure
	}
	return err
}

// RetryAfter reads the header Retry-After: seconds, or a date. ok is false for any
// other text.
func RetryAfter(header string, now time.Time) (after time.Duration, ok bool) {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// maxRetryAfter limits how long a hook can postpone an object.
const maxRetryAfter = time.Hour
