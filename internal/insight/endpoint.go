package insight

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
)

// Endpoint is an address of a running operator, for its metrics or its insight.
//
// If the address begins with https, requests have the user's own credentials: a secure
// endpoint asks for a token. Over plain HTTP, no token is ever sent.
type Endpoint struct {
	URL      string
	CAFile   string // verifies the certificate of the operator; "" means the certificates of the system
	Insecure bool   // the certificate is not verified; only for loopback addresses, as of kubectl port-forward
}

// endpointTimeout limits one request to an endpoint.
const endpointTimeout = 10 * time.Second

// client returns a client for the endpoint. login is called if the endpoint gets
// credentials.
func (e Endpoint) client(login func() (*rest.Config, error)) (*http.Client, error) {
	at, err := url.Parse(e.URL)
	if err != nil {
		return nil, fmt.Errorf("read the address of the operator: %w", err)
	}
	client := &http.Client{
		// A redirect could lead the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if at.Scheme != "https" {
		return client, nil
	}
	if e.Insecure && !isLoopback(at.Hostname()) {
		return nil, fmt.Errorf("%s is not this computer, so its certificate must be verified: it would get your token; use kubectl port-forward, or a file with its certificate authority", at.Hostname())
	}
	roots, err := e.roots()
	if err != nil {
		return nil, err
	}
	cfg, err := login()
	if err != nil {
		return nil, err
	}
	client.Transport, err = kube.EndpointTransport(cfg, roots, e.Insecure)
	return client, err
}

// roots returns the certificates that verify the operator. nil means those of the system.
func (e Endpoint) roots() (*x509.CertPool, error) {
	if e.CAFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificates in PEM format", e.CAFile)
	}
	return roots, nil
}

// isLoopback reports whether a host is this computer.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// fetch requests a document of an endpoint. read gets the body of the response. hint says
// how to reach the endpoint; it is added to connection errors.
func fetch(ctx context.Context, client *http.Client, url, hint string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("%w; name the file of its certificate authority with --certificate-authority, or use --insecure-skip-tls-verify with kubectl port-forward", err)
	}
	if err != nil {
		return fmt.Errorf("%w; %s", err, hint)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return read(response.Body)
	case http.StatusUnauthorized:
		hint = "a secure endpoint needs https and a login with a token; client certificates are only for the API server"
	case http.StatusForbidden:
		hint = "the user of the login needs the verb get on this path"
	default:
		hint = ""
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // the status is enough
	parts := []string{strings.ToLower(response.Status)}
	for _, more := range []string{cutLine(string(text)), hint} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return errors.New(strings.Join(parts, "; "))
}
