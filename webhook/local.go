package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/internal/jitter"
)

// Local is a server that listens on this machine with HTTPS. The zero value listens on any
// free port of all interfaces, with a self-signed certificate for a cluster on this
// machine.
type Local struct {
	Addr string // address to listen on; empty means all interfaces
	Port int    // port to listen on; 0 means any free port
	Path string // root path of all webhooks

	// Host is the name or address under which the API server reaches this machine.
	// Default: Addr, or "localhost" if Addr means all interfaces.
	Host string

	// CertFile and KeyFile are the files of the server's certificate and its private key,
	// in PEM. They are read again when they change. Set both or neither. Without them, the
	// server creates and renews a self-signed certificate.
	CertFile, KeyFile string
	KeyPassword       string // password of the key in KeyFile, if it is encrypted
	// CA is the CA certificate that the API server must trust, in PEM. If nil, the file
	// CAFile is used, which is read again when it changes. If that is also empty, the
	// contents of CertFile are used. All of them are ignored with self-signed certificates.
	CA     []byte
	CAFile string
	// CADump is a file into which the server writes the CA, for tools like curl.
	CADump string

	// ExtraNames are further DNS names or addresses for the self-signed certificate,
	// besides Host and Addr.
	ExtraNames []string
	Lifetime   time.Duration // of self-signed certificates; 0 means one year

	// ClientCA, ClientCAFile and ClientCADir contain the CAs of client certificates, in
	// PEM. All of them are trusted. Files of ClientCADir that are not in PEM format are
	// skipped. Files are read again when they change. API servers present a certificate
	// only if they are configured to. ClientAuth defines whether clients must present one.
	// With a CA, the default is "may". A ClientAuth that verifies certificates, here or in
	// TLS, requires a CA here or in TLS. tls.RequireAnyClientCert verifies nothing, so it
	// requires VerifyPeerCertificate or VerifyConnection in TLS.
	ClientCA                  []byte
	ClientCAFile, ClientCADir string
	ClientAuth                tls.ClientAuthType

	// TLS is the base configuration of connections. The server does not change it: it
	// copies it, and sets the certificate, the CAs of clients, ClientAuth, MinVersion
	// and CipherSuites in the copy, if they are given. If TLS has Certificates or
	// GetCertificate, the server generates no self-signed certificate. The API server
	// then trusts CA or CAFile, or else the CAs of its system. TLS.MinVersion must be
	// 0 or at least tls.VersionTLS12. May be nil.
	TLS *tls.Config

	// MinVersion is the lowest version of TLS that clients may use: tls.VersionTLS12 or
	// tls.VersionTLS13. Default: tls.VersionTLS12. 0 means the default.
	MinVersion uint16
	// CipherSuites are the allowed cipher suites of TLS 1.2, a subset of those returned by
	// [tls.CipherSuites]. Those of TLS 1.3 are not configurable. nil means the defaults of
	// crypto/tls.
	CipherSuites []uint16

	// MaxConnections limits the connections that are open at the same time, without those that
	// have sent nothing yet. Beyond it, the server closes a connection of the peer that has the
	// most of them.
	// Default: 192, or fewer if the process has a memory limit below 1,536 MiB: as many as a
	// sixteenth of it allows, at 512 KiB each, but at least 32. 0 means the default.
	MaxConnections int

	// Insecure serves HTTP without TLS. API servers never use that; it is meant for tunnels
	// and for development.
	Insecure bool

	// CheckEvery is the interval at which files are checked for changes. Default: 1
	// minute. 0 means the default.
	CheckEvery time.Duration
	// Overlap is the time between the announcement of a new certificate and its use. For as
	// long, the old certificate stays trusted afterwards. All API servers must receive the
	// announcement within this time. Default: 10 minutes. 0 means the default.
	Overlap time.Duration

	log       *slog.Logger
	certified func(expires time.Time) // may be nil
	random    jitter.Source
}

const (
	defaultCheckEvery = time.Minute
	defaultOverlap    = 10 * time.Minute
)

// The host names under which local clusters reach the machine that they run on.
const (
	HostK3d           = "host.k3d.internal"
	HostMinikube      = "host.minikube.internal"
	HostDockerDesktop = "host.docker.internal"
)

// K3d returns l with the Host of k3d and k3s clusters on this machine. A Host in l is kept.
func K3d(l Local) Local { return l.reachedAs(HostK3d) }

// Minikube returns l with the Host of minikube clusters on this machine. A Host in l is
// kept.
func Minikube(l Local) Local { return l.reachedAs(HostMinikube) }

// DockerDesktop returns l with the Host of the cluster of Docker Desktop on this machine.
// A Host in l is kept.
func DockerDesktop(l Local) Local { return l.reachedAs(HostDockerDesktop) }

func (l Local) reachedAs(host string) Local {
	l.Host = cmp.Or(l.Host, host)
	return l
}

// Bind implements [Binder].
func (l Local) Bind(e Environment) Server {
	l.bind(e)
	return l
}

func (l *Local) bind(e Environment) {
	l.log, l.certified, l.random = e.Log, e.Certified, e.Random
}

// Serve serves reviews until ctx is done; see [Server].
func (l Local) Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	var from source = maker{names: l.names(), lifetime: l.Lifetime}
	switch {
	case l.CertFile != "":
		from = l.files()
	case l.ownCertificates():
		from = nil
	}
	e := endpoint{Local: l, store: &MemoryStore{}, source: from, describe: l.describe}
	return e.serve(ctx, reviews, announce)
}

func (l Local) files() files {
	return files{cert: l.CertFile, key: l.KeyFile, password: l.KeyPassword, ca: l.CA, caFile: l.CAFile}
}

// Validate implements [Validator].
func (l Local) Validate() error {
	switch {
	case l.MaxConnections < 0:
		return fmt.Errorf("invalid webhook server: MaxConnections is %d; use a positive number, or 0 for the default", l.MaxConnections)
	case (l.CertFile == "") != (l.KeyFile == ""):
		return errors.New("invalid webhook server: set both CertFile and KeyFile, or neither for a self-signed certificate")
	case l.Insecure && (l.CertFile != "" || l.verifies() || l.TLS != nil):
		return errors.New("invalid webhook server: Insecure excludes CertFile, TLS and the CAs of clients")
	case l.CertFile != "" && l.ownCertificates():
		return errors.New("invalid webhook server: CertFile excludes certificates in TLS")
	}
	if err := l.checkClientAuth(); err != nil {
		return err
	}
	return l.checkTLS()
}

// verifies reports whether there are CAs to verify the certificates of clients by.
func (l Local) verifies() bool {
	return len(l.ClientCA) > 0 || l.ClientCAFile != "" || l.ClientCADir != ""
}

// ownCertificates reports whether the user's TLS configuration has certificates.
func (l Local) ownCertificates() bool {
	return l.TLS != nil && (len(l.TLS.Certificates) > 0 || l.TLS.GetCertificate != nil)
}

func (l Local) checkTLS() error {
	switch l.MinVersion {
	case 0, tls.VersionTLS12:
	case tls.VersionTLS13:
		if len(l.CipherSuites) > 0 {
			return errors.New("invalid webhook server: CipherSuites have no effect with MinVersion TLS 1.3; leave them out")
		}
	default:
		return fmt.Errorf("invalid webhook server: MinVersion %s; use tls.VersionTLS12 or tls.VersionTLS13", tls.VersionName(l.MinVersion))
	}
	if l.TLS != nil && l.TLS.MinVersion != 0 && l.TLS.MinVersion < tls.VersionTLS12 {
		return fmt.Errorf("invalid webhook server: TLS.MinVersion %s; use tls.VersionTLS12 or tls.VersionTLS13", tls.VersionName(l.TLS.MinVersion))
	}
	for _, id := range l.CipherSuites {
		if !slices.ContainsFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool {
			return s.ID == id && slices.Contains(s.SupportedVersions, tls.VersionTLS12)
		}) {
			return fmt.Errorf("invalid webhook server: the cipher suite %s is insecure, unknown or not for TLS 1.2", tls.CipherSuiteName(id))
		}
	}
	return nil
}

// reachable returns an address under which this machine reaches the server itself.
func (l Local) reachable() string {
	switch l.Addr {
	case "":
		return "localhost"
	case "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return l.Addr
}

// names returns the names of the self-signed certificate.
func (l Local) names() []string {
	return append([]string{cmp.Or(l.Host, l.reachable()), l.reachable()}, l.ExtraNames...)
}

// describe returns the client configuration for the server on the port.
func (l Local) describe(port int, bundle []byte) ClientConfig {
	return ClientConfig{URL: l.url(cmp.Or(l.Host, l.reachable()), port), CABundle: bundle}
}

func (l Local) url(host string, port int) string {
	scheme, usual := "https", 443
	if l.Insecure {
		scheme, usual = "http", 80
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != usual {
		host += ":" + strconv.Itoa(port)
	}
	return scheme + "://" + host + l.root()
}

func (l Local) root() string { return rootOf(l.Path) }

// listening returns the address for the log.
func (l Local) listening() string { return cmp.Or(l.Addr, "*") }

func (l Local) address() string { return net.JoinHostPort(l.Addr, strconv.Itoa(l.Port)) }
