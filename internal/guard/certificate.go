package guard

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"sync"
	"time"
)

// Times of certificates.
const (
	rereadAfter = 10 * time.Second     // files are read at most this often
	validFor    = 365 * 24 * time.Hour // of self-signed certificates
	renewBefore = validFor / 3
	backdated   = 5 * time.Minute // tolerates clocks that differ
)

// Certificate is the certificate of the endpoints: from files, which are read again when
// they change, or self-signed in memory. It is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string // "" means self-signed
	log               *slog.Logger

	mu        sync.Mutex
	current   *tls.Certificate
	cert, key []byte    // the contents of the files
	checked   time.Time // when the files were read
	renewal   time.Time // of a self-signed certificate
}

// NewCertificate reads the certificate, or creates one if both names are empty. A nil logger
// means no logging.
func NewCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	if err := CheckFiles(certFile, keyFile); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.refresh(time.Now())
}

// CheckFiles returns an error if only one of the files is given.
func CheckFiles(certFile, keyFile string) error {
	if (certFile == "") != (keyFile == "") {
		return errors.New("a certificate file and a key file are needed together; set both, or none for a self-signed certificate")
	}
	return nil
}

// TLS returns the configuration of a server with the certificate.
func (c *Certificate) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get returns the current certificate. If new files cannot be used, it is the previous one.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(time.Now()); err != nil {
		c.log.Warn("The certificate of the protected endpoints cannot be renewed. The previous one is used.", "error", err)
	}
	return c.current, nil
}

// refresh replaces the certificate if that is due. The lock must be held.
func (c *Certificate) refresh(now time.Time) error {
	if c.certFile == "" {
		if now.Before(c.renewal) {
			return nil
		}
		c.renewal = now.Add(validFor - renewBefore)
		made, err := selfSigned(now)
		if err != nil {
			return fmt.Errorf("create a self-signed certificate: %w", err)
		}
		c.current = made
		return nil
	}
	if !c.checked.IsZero() && now.Sub(c.checked) < rereadAfter {
		return nil
	}
	c.checked = now
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	if c.current != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("use the certificate %s: %w", c.certFile, err)
	}
	c.current, c.cert, c.key = &pair, cert, key
	return nil
}

// selfSigned creates a certificate for this machine.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "operator"},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(validFor),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
