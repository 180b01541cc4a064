package admission

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"gopf.dev/gopf/internal/kube"
)

// cluster gives webhook servers information about the cluster.
type cluster struct{ client *kube.Client }

const certificateTimeout = 10 * time.Second

// Certificate returns the certificate of the API server without verifying it. It serves
// only to recognize the type of cluster.
func (c cluster) Certificate(ctx context.Context) (*x509.Certificate, error) {
	u, err := url.Parse(c.client.Host())
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" {
		return nil, errors.New("the API server has no certificate")
	}
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if err != nil {
		return nil, fmt.Errorf("get the certificate of the API server: %w", err)
	}
	cert := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	_ = conn.Close() // an error does not matter: nothing was written
	return cert, nil
}

// Version returns the version of the API server.
func (c cluster) Version(ctx context.Context) (string, error) {
	v, err := c.client.Version(ctx)
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}
