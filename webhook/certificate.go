package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"time"
)

// identity is a certificate, its private key, and the CA certificates that clients must
// trust, all in PEM.
type identity struct {
	ca, cert, key []byte
}

// backdated moves the start of the validity into the past, to tolerate clock skew.
const backdated = 5 * time.Minute

// selfSigned creates a self-signed certificate for the names. It is its own CA.
func selfSigned(names []string, now time.Time, lifetime time.Duration) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return identity{}, err
	}
	subject := sortNames(names)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: subject.common},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(lifetime),
		DNSNames:              subject.dns,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	for _, ip := range subject.ips {
		template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return identity{}, fmt.Errorf("create a self-signed certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return identity{ca: cert, cert: cert, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})}, nil
}

// subject holds the names of a certificate by type.
type subject struct {
	common string // the first DNS name; without DNS names, the first address
	ips    []netip.Addr
	dns    []string // also contains the addresses as text, for clients that look for them here
}

// sortNames separates IP addresses from DNS names. It drops duplicates and unspecified
// addresses such as 0.0.0.0.
func sortNames(names []string) (s subject) {
	for _, name := range names {
		ip, err := netip.ParseAddr(name)
		if err != nil {
			if name != "" && !slices.Contains(s.dns, name) {
				s.dns = append(s.dns, name)
			}
			continue
		}
		if ip = ip.Unmap().WithZone(""); !ip.IsUnspecified() && !slices.Contains(s.ips, ip) {
			s.ips = append(s.ips, ip)
		}
	}
	switch {
	case len(s.dns) > 0:
		s.common = s.dns[0]
	case len(s.ips) > 0:
		s.common = s.ips[0].String()
	}
	for _, ip := range s.ips {
		s.dns = append(s.dns, ip.String())
	}
	return s
}

// pair returns the certificate and its key for use in a TLS configuration.
func (id identity) pair() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(id.cert, id.key)
	if err != nil {
		return nil, fmt.Errorf("load the certificate and its key: %w", err)
	}
	return &pair, nil
}

// leaf returns the parsed certificate.
func (id identity) leaf() (*x509.Certificate, error) {
	block, _ := pem.Decode(id.cert)
	if block == nil {
		return nil, fmt.Errorf("the certificate is not in PEM format")
	}
	return x509.ParseCertificate(block.Bytes)
}

// covers reports whether the certificate is valid for all of the names.
func covers(cert *x509.Certificate, names []string) bool {
	wanted := sortNames(names)
	for _, name := range wanted.dns {
		if !slices.Contains(cert.DNSNames, name) {
			return false
		}
	}
	return true
}
