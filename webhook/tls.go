package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gopf.dev/gopf/internal/backoff"
)

// use serves the current certificate to new connections.
func (e *endpoint) use(r ring) error {
	clients, err := e.clientCAs()
	if err != nil {
		return err
	}
	before := e.config.Load()
	if before != nil && r.current.equal(e.served.current) && bytes.Equal(clients, e.client) {
		return nil
	}
	pair, err := r.current.pair()
	if err != nil {
		return err
	}
	config, err := e.tlsConfig(clients)
	if err != nil {
		return err
	}
	config.Certificates = []tls.Certificate{*pair}
	e.config.Store(config)
	e.served, e.client = r, clients
	if e.certified != nil {
		e.certified(pair.Leaf.NotAfter)
	}
	if before != nil {
		e.log.Info("The webhook server has a new certificate.", "until", pair.Leaf.NotAfter)
	}
	return nil
}

// useOwn serves the certificates of the user's TLS configuration, with the current CAs
// of clients.
func (e *endpoint) useOwn() error {
	clients, err := e.clientCAs()
	if err != nil {
		return err
	}
	if e.config.Load() != nil && bytes.Equal(clients, e.client) {
		return nil
	}
	config, err := e.tlsConfig(clients)
	if err != nil {
		return err
	}
	e.config.Store(config)
	e.client = clients
	if e.certified != nil && len(config.Certificates) > 0 && config.Certificates[0].Leaf != nil {
		e.certified(config.Certificates[0].Leaf.NotAfter)
	}
	return nil
}

// keepOwn announces the CA of the user's certificates, and reads CA files again when they
// change.
func (e *endpoint) keepOwn(ctx context.Context, announce func(bundle []byte)) {
	var told []byte
	for first := true; ; first = false {
		bundle, err := e.bundle()
		if err != nil {
			e.log.Error("Reading the CA of the webhook server failed; retrying.", "error", err)
		} else if first || !bytes.Equal(told, bundle) {
			told = bundle
			e.dump(bundle)
			announce(bundle)
		}
		if backoff.Sleep(ctx, cmp.Or(e.CheckEvery, defaultCheckEvery)) != nil {
			return
		}
		if err := e.useOwn(); err != nil {
			e.log.Error("Loading the CAs of clients failed; keeping the former ones.", "error", err)
		}
	}
}

// bundle returns the CA that the API server must trust if the user supplies the
// certificates. nil means the CAs of its system.
func (e *endpoint) bundle() ([]byte, error) {
	if e.CA != nil || e.CAFile == "" {
		return e.CA, nil
	}
	return os.ReadFile(e.CAFile)
}

// tlsConfig returns the configuration of connections, without the server's certificate.
func (e *endpoint) tlsConfig(clients []byte) (*tls.Config, error) {
	config := &tls.Config{}
	if e.TLS != nil {
		config = e.TLS.Clone()
	}
	config.MinVersion = cmp.Or(e.MinVersion, config.MinVersion, tls.VersionTLS12)
	if e.CipherSuites != nil {
		config.CipherSuites = e.CipherSuites
	}
	if config.NextProtos == nil {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	config.ClientAuth = e.clientAuth()
	config.VerifyPeerCertificate = short(config.VerifyPeerCertificate)
	if len(clients) == 0 {
		return config, nil
	}
	config.ClientCAs = x509.NewCertPool()
	if e.TLS != nil && e.TLS.ClientCAs != nil {
		config.ClientCAs = e.TLS.ClientCAs.Clone()
	}
	if !config.ClientCAs.AppendCertsFromPEM(clients) {
		return nil, errors.New("the CAs of clients are not in PEM format")
	}
	return config, nil
}

// clientAuth returns the ClientAuth of connections: the field, or else that of TLS. With a
// ClientCA, the default is tls.VerifyClientCertIfGiven.
func (l Local) clientAuth() tls.ClientAuthType {
	auth := l.ClientAuth
	if l.TLS != nil {
		auth = cmp.Or(auth, l.TLS.ClientAuth)
	}
	if l.verifies() {
		auth = cmp.Or(auth, tls.VerifyClientCertIfGiven)
	}
	return auth
}

// checkClientAuth returns an error if ClientAuth would admit clients that the user does not
// expect.
func (l Local) checkClientAuth() error {
	switch auth := l.clientAuth(); auth {
	case tls.NoClientCert, tls.RequestClientCert:
	case tls.RequireAnyClientCert: // anyone can create a certificate
		if l.TLS == nil || l.TLS.VerifyPeerCertificate == nil && l.TLS.VerifyConnection == nil {
			return fmt.Errorf("invalid webhook server: ClientAuth %s does not verify certificates; use tls.RequireAndVerifyClientCert with a ClientCAFile, or set TLS.VerifyConnection", auth)
		}
	default:
		// Without CAs, crypto/tls trusts those of the system.
		if !l.verifies() && (l.TLS == nil || l.TLS.ClientCAs == nil) {
			return fmt.Errorf("invalid webhook server: ClientAuth %s requires a ClientCAFile with the CA of the client certificates", auth)
		}
	}
	return nil
}

// maxChain limits the bytes of a client's certificates. Those of API servers have about two
// thousand. A connection keeps them decoded, which takes about ten times as much memory, and
// they may be unverified.
const maxChain = 32 << 10

// short returns a check of client certificates that refuses long chains, and calls the
// user's check for others. next may be nil.
func short(next func([][]byte, [][]*x509.Certificate) error) func([][]byte, [][]*x509.Certificate) error {
	return func(raw [][]byte, verified [][]*x509.Certificate) error {
		size := 0
		for _, cert := range raw {
			size += len(cert)
		}
		switch {
		case size > maxChain:
			return fmt.Errorf("the certificates of the client have %d bytes, more than %d", size, maxChain)
		case next != nil:
			return next(raw, verified)
		}
		return nil
	}
}

// clientCAs returns all CAs of client certificates, in PEM. The result is empty if there
// are none.
func (e *endpoint) clientCAs() ([]byte, error) {
	all := e.ClientCA
	if len(all) > 0 && !isPEM(all) {
		return nil, errors.New("ClientCA is not in PEM format")
	}
	if e.ClientCAFile != "" {
		pem, err := os.ReadFile(e.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("read ClientCAFile: %w", err)
		}
		if !isPEM(pem) {
			return nil, fmt.Errorf("ClientCAFile %s is not in PEM format", e.ClientCAFile)
		}
		all = joinPEM(all, pem)
	}
	if e.ClientCADir == "" {
		return all, nil
	}
	// Mounted Secrets contain symbolic links and folders in addition to the files.
	entries, err := os.ReadDir(e.ClientCADir)
	if err != nil {
		return nil, fmt.Errorf("read ClientCADir: %w", err)
	}
	before := len(all)
	for _, entry := range entries {
		pem, err := os.ReadFile(filepath.Join(e.ClientCADir, entry.Name()))
		if err == nil && isPEM(pem) {
			all = joinPEM(all, pem)
		}
	}
	if len(all) == before {
		return nil, fmt.Errorf("ClientCADir %s contains no CA in PEM format", e.ClientCADir)
	}
	return all, nil
}

func isPEM(data []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(data) }

// joinPEM concatenates PEM, with a line break between the two.
func joinPEM(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return bytes.Join([][]byte{bytes.TrimRight(a, "\n"), b}, []byte("\n"))
}

// configForClient returns the configuration for a new connection. The user's
// GetConfigForClient takes precedence.
func (e *endpoint) configForClient(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if e.TLS != nil && e.TLS.GetConfigForClient != nil {
		if own, err := e.TLS.GetConfigForClient(hello); own != nil || err != nil {
			return own, err
		}
	}
	return e.config.Load(), nil
}
