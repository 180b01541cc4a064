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

// Local is a server that listens on this machine. The zero value does so on any
// free port of all interfaces, for a cluster on this machine, with a self-signed
// certificate.
type Local struct {
	Addr string // to listen at; "" is all interfaces
	Port int    // to listen at; 0 is any free one
	Path string // the root path of all webhooks

	// Host is the name or address by which the API server reaches this machine.
	// If empty, it is Addr, or "localhost" for all interfaces.
	Host string

	// CertFile and KeyFile have the server's certificate and its key, in PEM. They
	// are read again when they change. Without them, there is a self-signed
	// certificate.
	CertFile, KeyFile string
	KeyPassword       string // of the key in KeyFile, if it is encrypted
	// CA is whom the API server shall trust, in PEM; else it is what is in CAFile,
	// which is read again when it changes, or else what is in CertFile. It has no
	// meaning for self-signed certificates.
	CA     []byte
	CAFile string
	// CADump is a file that is written with whom to trust, for tools like curl.
	CADump string

	// ExtraNames are names or addresses of which the self-signed certificate is
	// too, besides Host and Addr.
	ExtraNames []string
	Lifetime   time.Duration // of self-signed certificates; 0 is a year

	// ClientCA, ClientCAFile and ClientCADir have the CAs, in PEM, that sign the
	// certificates of clients: API servers show one only if they are configured for
	// it. All CAs that are given count. Of ClientCADir, files that are no PEM are
	// skipped. Files are read again when they change. ClientAuth says whether
	// clients must show certificates; with a CA, they may. A ClientAuth that asks
	// for certificates without a CA is an error.
	ClientCA                  []byte
	ClientCAFile, ClientCADir string
	ClientAuth                tls.ClientAuthType

	// TLS is the base configuration of connections. The server does not change it: it
	// sets the certificate, the CAs of clients, ClientAuth, MinVersion and
	// CipherSuites, where given, in a copy. If TLS has Certificates or
	// GetCertificate, the server generates no self-signed certificate. The API server
	// then trusts CA or CAFile, or else the CAs of its system. May be nil.
	TLS *tls.Config

	// MinVersion is the lowest version of TLS that clients may use: tls.VersionTLS12
	// or tls.VersionTLS13. Default: tls.VersionTLS12. 0 means the default.
	MinVersion uint16
	// CipherSuites are the ones that may be used with TLS 1.2, of those that
	// [tls.CipherSuites] returns. TLS 1.3 has its own. nil means all of them that
	// crypto/tls uses by default.
	CipherSuites []uint16

	// MaxConnections is the number of connections that may be open at the same time.
	// Beyond it, a connection of the peer with the most of them is closed.
	// Default: 1024. 0 means the default.
	MaxConnections int

	// Insecure serves HTTP without TLS, which API servers never use: for tunnels,
	// and for development.
	Insecure bool

	// CheckEvery is how often files are looked at for changes. 0 is a minute.
	CheckEvery time.Duration
	// Overlap is for how long a new certificate is announced before it is served,
	// and the old one is trusted after that. All API servers must have noticed
	// the announcement by then. 0 is 10 minutes.
	Overlap time.Duration

	log       *slog.Logger
	certified func(expires time.Time) // may be nil
	random    jitter.Source
}

const (
	defaultCheckEvery = time.Minute
	defaultOverlap    = 10 * time.Minute
)

// The names by which local clusters reach the machine that they run on.
const (
	HostK3d           = "host.k3d.internal"
	HostMinikube      = "host.minikube.internal"
	HostDockerDesktop = "host.docker.internal"
)

// K3d is the server for clusters of K3d and K3s on this machine.
func K3d(l Local) Local { return l.reachedAs(HostK3d) }

// Minikube is the server for clusters of Minikube on this machine.
func Minikube(l Local) Local { return l.reachedAs(HostMinikube) }

// DockerDesktop is the server for the cluster of Docker Desktop on this machine.
func DockerDesktop(l Local) Local { return l.reachedAs(HostDockerDesktop) }

func (l Local) reachedAs(host string) Local {
	l.Host = cmp.Or(l.Host, host)
	return l
}

// Bind makes it log where the operator does, and report the expiry of its certificate.
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

// Validate returns what is wrong with the configuration; see [Validator].
func (l Local) Validate() error {
	switch {
	case l.MaxConnections < 0:
		return fmt.Errorf("the webhook server has MaxConnections %d: use a positive number, or 0 for the default", l.MaxConnections)
	case (l.CertFile == "") != (l.KeyFile == ""):
		return errors.New("the webhook server needs both CertFile and KeyFile, or neither for a self-signed certificate")
	case l.Insecure && (l.CertFile != "" || l.verifies() || l.TLS != nil):
		return errors.New("the webhook server is Insecure and has certificates or a TLS configuration: choose one")
	case l.CertFile != "" && l.ownCertificates():
		return errors.New("the webhook server has a CertFile, and certificates in TLS: choose one")
	case l.ClientAuth != tls.NoClientCert && l.ClientAuth != tls.RequestClientCert && !l.verifies() && (l.TLS == nil || l.TLS.ClientCAs == nil):
		return fmt.Errorf("the webhook server has the ClientAuth %s, but no ClientCAFile: name the CA that signs the certificates of clients", l.ClientAuth)
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
			return errors.New("the webhook server has CipherSuites, but its MinVersion is TLS 1.3, which has its own: leave them out")
		}
	default:
		return fmt.Errorf("the webhook server has the MinVersion %s: choose tls.VersionTLS12 or tls.VersionTLS13", tls.VersionName(l.MinVersion))
	}
	for _, id := range l.CipherSuites {
		if !slices.ContainsFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool {
			return s.ID == id && slices.Contains(s.SupportedVersions, tls.VersionTLS12)
		}) {
			return fmt.Errorf("the webhook server has the cipher suite %s, which is insecure, unknown or not of TLS 1.2", tls.CipherSuiteName(id))
		}
	}
	return nil
}

// reachable is an address by which what listens at Addr can be reached from here.
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

// names are those that a self-signed certificate is for.
func (l Local) names() []string {
	return append([]string{cmp.Or(l.Host, l.reachable()), l.reachable()}, l.ExtraNames...)
}

// describe tells how to reach what listens at the port.
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

// listening is the address for the log.
func (l Local) listening() string { return cmp.Or(l.Addr, "*") }

func (l Local) address() string { return net.JoinHostPort(l.Addr, strconv.Itoa(l.Port)) }
