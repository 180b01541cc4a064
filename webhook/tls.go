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
)

// use serves the current certificate to new connections from now on.
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

// useOwn serves the certificates of the user's TLS configuration, and the CAs of
// clients as they are now.
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

// keepOwn announces the CA of the user's certificates, and follows the files of CAs.
func (e *endpoint) keepOwn(ctx context.Context, announce func(bundle []byte)) {
	var told []byte
	for first := true; ; first = false {
		bundle, err := e.bundle()
		if err != nil {
			e.log.Error("The CA of the webhook server cannot be read; will try again.", "error", err)
		} else if first || !bytes.Equal(told, bundle) {
			told = bundle
			e.dump(bundle)
			announce(bundle)
		}
		if !pause(ctx, cmp.Or(e.CheckEvery, defaultCheckEvery)) {
			return
		}
		if err := e.useOwn(); err != nil {
			e.log.Error("The CAs of clients cannot be used; the former ones stay.", "error", err)
		}
	}
}

// bundle returns the CA that the API server must trust if the certificates are the
// user's. nil means the authorities of its system.
func (e *endpoint) bundle() ([]byte, error) {
	if e.CA != nil || e.CAFile == "" {
		return e.CA, nil
	}
	return os.ReadFile(e.CAFile)
}

// tlsConfig is the configuration of connections, without a certificate of ours.
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
	config.ClientAuth = cmp.Or(e.ClientAuth, config.ClientAuth)
	if len(clients) == 0 {
		return config, nil
	}
	config.ClientAuth = cmp.Or(config.ClientAuth, tls.VerifyClientCertIfGiven)
	config.ClientCAs = x509.NewCertPool()
	if e.TLS != nil && e.TLS.ClientCAs != nil {
		config.ClientCAs = e.TLS.ClientCAs.Clone()
	}
	if !config.ClientCAs.AppendCertsFromPEM(clients) {
		return nil, errors.New("the CAs of clients are no PEM")
	}
	return config, nil
}

// clientCAs is the PEM of all CAs that sign the certificates of clients. It is
// empty if there are none.
func (e *endpoint) clientCAs() ([]byte, error) {
	all := e.ClientCA
	if len(all) > 0 && !isPEM(all) {
		return nil, errors.New("the ClientCA is no PEM")
	}
	if e.ClientCAFile != "" {
		pem, err := os.ReadFile(e.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA of clients: %w", err)
		}
		if !isPEM(pem) {
			return nil, fmt.Errorf("the CA of clients in %s is no PEM", e.ClientCAFile)
		}
		all = joinPEM(all, pem)
	}
	if e.ClientCADir == "" {
		return all, nil
	}
	// Mounted Secrets contain symbolic links and folders in addition to the files.
	entries, err := os.ReadDir(e.ClientCADir)
	if err != nil {
		return nil, fmt.Errorf("read the CAs of clients: %w", err)
	}
	before := len(all)
	for _, entry := range entries {
		pem, err := os.ReadFile(filepath.Join(e.ClientCADir, entry.Name()))
		if err == nil && isPEM(pem) {
			all = joinPEM(all, pem)
		}
	}
	if len(all) == before {
		return nil, fmt.Errorf("the folder %s has no CAs of clients in PEM", e.ClientCADir)
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

// configForClient is the configuration for a new connection. A user's function has
// the first word.
func (e *endpoint) configForClient(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if e.TLS != nil && e.TLS.GetConfigForClient != nil {
		if own, err := e.TLS.GetConfigForClient(hello); own != nil || err != nil {
			return own, err
		}
	}
	return e.config.Load(), nil
}
