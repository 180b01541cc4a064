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

// cluster is what servers can find out about the cluster.
type cluster struct{ client *kube.Client }

const certificateTimeout = 10 * time.Second

// Certificate asks the API server for its certificate, whoever signed it: it is
// only looked at in order to recognise the cluster.
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
	_ = conn.Close() // there is nothing more to say
	return cert, nil
}

// Version asks the API server for its version.
func (c cluster) Version(ctx context.Context) (string, error) {
	v, err := c.client.Version(ctx)
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}
