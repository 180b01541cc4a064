package webhook

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSelfSignedCertificatesHaveTheRightNames(t *testing.T) {
	for name, c := range map[string]struct {
		local  Local
		common string
		dns    []string
		ips    []string
	}{
		"all interfaces":    {Local{}, "localhost", []string{"localhost"}, nil},
		"an address":        {Local{Addr: "127.0.0.1"}, "127.0.0.1", []string{"127.0.0.1"}, []string{"127.0.0.1"}},
		"all of IPv4":       {Local{Addr: "0.0.0.0"}, "127.0.0.1", []string{"127.0.0.1"}, []string{"127.0.0.1"}},
		"all of IPv6":       {Local{Addr: "::"}, "::1", []string{"::1"}, []string{"::1"}},
		"a host":            {Local{Addr: "0.0.0.0", Host: "somehost"}, "somehost", []string{"somehost", "127.0.0.1"}, []string{"127.0.0.1"}},
		"a flavour":         {K3d(Local{}), "host.k3d.internal", []string{"host.k3d.internal", "localhost"}, nil},
		"a flavour's host":  {Minikube(Local{Host: "mine"}), "mine", []string{"mine", "localhost"}, nil},
		"extra names":       {Local{Addr: "127.0.0.1", ExtraNames: []string{"other", "0:0:0:0:0:0:0:1", "::", "other"}}, "other", []string{"other", "127.0.0.1", "::1"}, []string{"127.0.0.1", "::1"}},
		"a mapped address":  {Local{Addr: "::ffff:1.2.3.4"}, "1.2.3.4", []string{"1.2.3.4"}, []string{"1.2.3.4"}},
		"the docker's host": {DockerDesktop(Local{Addr: "1.2.3.4"}), "host.docker.internal", []string{"host.docker.internal", "1.2.3.4"}, []string{"1.2.3.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			id, err := selfSigned(c.local.names(), now, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := id.leaf()
			if err != nil {
				t.Fatal(err)
			}
			var ips []string
			for _, ip := range leaf.IPAddresses {
				ips = append(ips, ip.String())
			}
			if leaf.Subject.CommonName != c.common || !cmp.Equal(leaf.DNSNames, c.dns) || !cmp.Equal(ips, c.ips) {
				t.Errorf("got %s, %v, %v", leaf.Subject.CommonName, leaf.DNSNames, ips)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(id.ca)
			for _, name := range append(c.dns, c.ips...) {
				if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if !leaf.IsCA || !covers(leaf, c.local.names()) || covers(leaf, []string{"another"}) {
				t.Error("it is not a CA, or does not cover all names")
			}
		})
	}
}

func TestAnnouncedURLs(t *testing.T) {
	for want, c := range map[string]struct {
		local Local
		port  int
	}{
		"https://localhost:9443":               {Local{}, 9443},
		"https://localhost":                    {Local{}, 443},
		"http://localhost:443":                 {Local{Insecure: true}, 443},
		"http://localhost":                     {Local{Insecure: true}, 80},
		"https://127.0.0.1:1/hooks":            {Local{Addr: "0.0.0.0", Path: "/hooks/"}, 1},
		"https://[::1]:1/a/b":                  {Local{Addr: "::", Path: "a/b"}, 1},
		"https://host.k3d.internal:1":          {K3d(Local{Addr: "1.2.3.4"}), 1},
		"https://1.2.3.4:1":                    {Local{Addr: "1.2.3.4", Path: "/"}, 1},
		"https://host.minikube.internal:54321": {Minikube(Local{}), 54321},
	} {
		if got := c.local.describe(c.port, nil).URL; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestClustersAreRecognized(t *testing.T) {
	cert := func(change func(*x509.Certificate)) *x509.Certificate {
		c := &x509.Certificate{DNSNames: []string{"kubernetes"}}
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		cert    *x509.Certificate
		version string
		want    string
	}{
		"K3s by name":         {cert(func(c *x509.Certificate) { c.Subject.CommonName = "k3s" }), "", HostK3d},
		"K3s by organisation": {cert(func(c *x509.Certificate) { c.Subject.Organization = []string{"k3s"} }), "", HostK3d},
		"K3s by issuer":       {cert(func(c *x509.Certificate) { c.Issuer.CommonName = "k3s-server-ca@1" }), "", HostK3d},
		"K3s by version":      {cert(func(*x509.Certificate) {}), "v1.37.1+k3s1", HostK3d},
		"K3s without TLS":     {nil, "v1.37.1+k3s1", HostK3d},
		"Minikube by name":    {cert(func(c *x509.Certificate) { c.Subject.CommonName = "minikube" }), "", HostMinikube},
		"Minikube by issuer":  {cert(func(c *x509.Certificate) { c.Issuer.CommonName = "minikubeCA" }), "", HostMinikube},
		"Docker Desktop":      {cert(func(c *x509.Certificate) { c.DNSNames = []string{"docker-for-desktop"} }), "", HostDockerDesktop},
		"something else":      {cert(func(c *x509.Certificate) { c.Issuer.CommonName = "kubernetes" }), "v1.37.1", ""},
	} {
		if got := Detect(c.cert, c.version); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestEncryptedKeysAreDecrypted(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl")
	}
	for name, args := range map[string][]string{
		"PKCS #8":           {"pkcs8", "-topk8", "-passout", "pass:secret"},
		"PKCS #8, AES-128":  {"pkcs8", "-topk8", "-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512", "-passout", "pass:secret"},
		"PKCS #8, SHA-1":    {"pkcs8", "-topk8", "-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA1", "-passout", "pass:secret"},
		"traditional":       {"rsa", "-traditional", "-aes256", "-passout", "pass:secret"},
		"without a need to": {"rsa"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(args ...string) {
				t.Helper()
				if out, err := exec.CommandContext(t.Context(), openssl, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			plain, key, cert := filepath.Join(dir, "plain"), filepath.Join(dir, "key"), filepath.Join(dir, "cert")
			run("req", "-x509", "-newkey", "rsa:2048", "-keyout", plain, "-out", cert, "-days", "2", "-nodes", "-subj", "/CN=x")
			run(append(args, "-in", plain, "-out", key)...)
			id, err := files{cert: cert, key: key, password: "secret"}.read()
			if err != nil {
				t.Fatal(err)
			}
			if string(id.ca) != string(id.cert) {
				t.Error("the CA is not the certificate")
			}
			text, _ := os.ReadFile(key)
			if _, err := (files{cert: cert, key: key, password: "wrong"}).read(); err == nil && strings.Contains(string(text), "ENCRYPTED") {
				t.Error("a wrong password was accepted")
			}
		})
	}
}
