package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shown posts a review with a certificate of the client, if any, and returns the
// name in it that the server verified.
func shown(announced ClientConfig, pair *tls.Certificate, maxVersion uint16) string {
	client := clientOf(announced)
	if pair != nil {
		client = clientOf(announced, *pair)
	}
	client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = maxVersion
	resp, err := client.Post(announced.URL, "", nil)
	if err != nil {
		return "refused"
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	fields := strings.Fields(string(text))
	return fields[len(fields)-1]
}

func TestCAsOfClientsComeAsDataAsAFileAndAsAFolder(t *testing.T) {
	pairs := map[string]*tls.Certificate{}
	pems := map[string][]byte{}
	for _, name := range []string{"one", "two", "three", "four"} {
		id := newIdentity(t, name)
		pair, err := id.pair()
		if err != nil {
			t.Fatal(err)
		}
		pairs[name], pems[name] = pair, id.cert
	}
	folder := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("three.pem", pems["three"])
	put("README", []byte("no certificate"))
	if err := os.Mkdir(filepath.Join(folder, "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "two.pem")
	if err := os.WriteFile(file, pems["two"], 0o600); err != nil {
		t.Fatal(err)
	}
	all := Local{ClientCA: bytes.TrimRight(pems["one"], "\n"), ClientCAFile: file, ClientCADir: folder}
	for name, c := range map[string]struct {
		server Local
		want   map[string]string
	}{
		"data":   {Local{ClientCA: pems["one"]}, map[string]string{"one": "one", "two": "nobody"}},
		"folder": {Local{ClientCADir: folder}, map[string]string{"three": "three", "one": "nobody"}},
		"all":    {all, map[string]string{"one": "one", "two": "two", "three": "three", "four": "nobody", "": "nobody"}},
	} {
		t.Run(name, func(t *testing.T) {
			announced := <-run(t, c.server, echo)
			for client, want := range c.want {
				if got := shown(announced, pairs[client], 0); got != want {
					t.Errorf("the client %q: got %s, want %s", client, got, want)
				}
			}
		})
	}
}

func TestCAsThatAreAddedToTheFolderCount(t *testing.T) {
	old, added := newIdentity(t, "old"), newIdentity(t, "added")
	pair, err := added.pair()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "old.pem"), old.cert, 0o600); err != nil {
		t.Fatal(err)
	}
	announced := <-run(t, Local{ClientCADir: folder, CheckEvery: 10 * time.Millisecond}, echo)
	if got := shown(announced, pair, 0); got != "nobody" {
		t.Fatalf("before: %s", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "added.pem"), added.cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if shown(announced, pair, 0) == "added" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the added CA does not count")
}

func TestCAsOfClientsThatAreNoneAreSaid(t *testing.T) {
	for name, server := range map[string]Local{
		"no PEM":          {ClientCA: []byte("x")},
		"no folder":       {ClientCADir: filepath.Join(t.TempDir(), "none")},
		"an empty folder": {ClientCADir: t.TempDir()},
	} {
		err := server.Serve(t.Context(), nil, func(ClientConfig) {})
		if err == nil || !strings.Contains(err.Error(), "of clients") && !strings.Contains(err.Error(), "ClientCA") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheOwnTLSConfigurationIsTheBase(t *testing.T) {
	id := newIdentity(t, "127.0.0.1", "own.example.com")
	pair, err := id.pair()
	if err != nil {
		t.Fatal(err)
	}
	client := newIdentity(t, "apiserver")
	clientPair, err := client.pair()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(client.cert)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, id.cert, 0o600); err != nil {
		t.Fatal(err)
	}
	own := func(c *tls.Config) *tls.Config { c.Certificates = []tls.Certificate{*pair}; return c }
	for name, c := range map[string]struct {
		server Local
		max    uint16
		shown  *tls.Certificate
		want   string
		bundle []byte // nil for that of a self-signed certificate
	}{
		"a version, self-signed": {Local{TLS: &tls.Config{MinVersion: tls.VersionTLS13}}, tls.VersionTLS12, nil, "refused", nil},
		"self-signed":            {Local{TLS: &tls.Config{MinVersion: tls.VersionTLS13}}, 0, nil, "nobody", nil},
		"the field goes first":   {Local{MinVersion: tls.VersionTLS12, TLS: &tls.Config{MinVersion: tls.VersionTLS13}}, tls.VersionTLS12, nil, "nobody", nil},
		"own certificates":       {Local{CA: id.cert, TLS: own(&tls.Config{})}, 0, nil, "nobody", id.cert},
		"a file of their CA":     {Local{CAFile: caFile, TLS: own(&tls.Config{})}, 0, nil, "nobody", id.cert},
		"a function of them": {Local{CA: id.cert, TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair, nil }}},
			0, nil, "nobody", id.cert},
		"own CAs of clients": {Local{TLS: &tls.Config{ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}}, 0, clientPair, "apiserver", nil},
		"demanded":           {Local{CA: id.cert, TLS: own(&tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})}, 0, nil, "refused", id.cert},
		"a CA beside them":   {Local{ClientCA: client.cert, CA: id.cert, TLS: own(&tls.Config{})}, 0, clientPair, "apiserver", id.cert},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Addr = "127.0.0.1"
			announced := <-run(t, c.server, echo)
			if c.bundle != nil && !bytes.Equal(announced.CABundle, c.bundle) {
				t.Errorf("the API server is told to trust\n%s", announced.CABundle)
			}
			got := shown(announced, c.shown, c.max)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSettingsThatVerifyNoClientAreInvalid(t *testing.T) {
	const anyone, noCA = "use tls.RequireAndVerifyClientCert", "requires a ClientCAFile"
	peer := func([][]byte, [][]*x509.Certificate) error { return nil }
	connection := func(tls.ConnectionState) error { return nil }
	pool := x509.NewCertPool()
	for name, c := range map[string]struct {
		server Validator
		want   string // empty means valid
	}{
		"any certificate, CA data":                 {Local{ClientAuth: tls.RequireAnyClientCert, ClientCA: []byte("pem")}, anyone},
		"any certificate, CA file":                 {Local{ClientAuth: tls.RequireAnyClientCert, ClientCAFile: "ca.pem"}, anyone},
		"any certificate, CA folder":               {Local{ClientAuth: tls.RequireAnyClientCert, ClientCADir: "/cas"}, anyone},
		"any certificate, CAs in TLS":              {Local{ClientAuth: tls.RequireAnyClientCert, TLS: &tls.Config{ClientCAs: pool}}, anyone},
		"any certificate by TLS":                   {Local{TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert}}, anyone},
		"any certificate by TLS, CAs in TLS":       {Local{TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert, ClientCAs: pool}}, anyone},
		"any certificate by TLS, CA file":          {Local{ClientCAFile: "ca.pem", TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert}}, anyone},
		"any certificate, behind a Service":        {Service{Name: "x", Listen: Local{TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert}}}, anyone},
		"own check of certificates":                {Local{ClientAuth: tls.RequireAnyClientCert, TLS: &tls.Config{VerifyPeerCertificate: peer}}, ""},
		"own check of connections":                 {Local{ClientAuth: tls.RequireAnyClientCert, TLS: &tls.Config{VerifyConnection: connection}}, ""},
		"own check of certificates, all in TLS":    {Local{TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert, VerifyPeerCertificate: peer}}, ""},
		"own check of connections, all in TLS":     {Local{TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert, VerifyConnection: connection}}, ""},
		"the field replaces any certificate":       {Local{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAFile: "ca.pem", TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert}}, ""},
		"the field allows any certificate":         {Local{ClientAuth: tls.RequireAnyClientCert, TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}}, anyone},
		"required by TLS, no CA":                   {Local{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}, noCA},
		"verified by TLS, no CA":                   {Local{TLS: &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven}}, noCA},
		"required by TLS, no CA, behind a Service": {Service{Name: "x", Listen: Local{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}}, noCA},
		"required by TLS, no CA, automatically":    {Auto{Local: Local{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}}, noCA},
		"required by TLS, no CA, own check":        {Local{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, VerifyPeerCertificate: peer}}, noCA},
		"required by TLS, CA data":                 {Local{ClientCA: []byte("pem"), TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}, ""},
		"required by TLS, CA file":                 {Local{ClientCAFile: "ca.pem", TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}, ""},
		"required by TLS, CA folder":               {Local{ClientCADir: "/cas", TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}, ""},
		"required by TLS, CAs in TLS":              {Local{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}}, ""},
		"verified by TLS, CAs in TLS":              {Local{TLS: &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}}, ""},
		"requested by TLS":                         {Local{TLS: &tls.Config{ClientAuth: tls.RequestClientCert}}, ""},
		"CAs only":                                 {Local{ClientCAFile: "ca.pem"}, ""},
	} {
		if err := c.server.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestOldVersionsInTheOwnTLSConfigurationAreInvalid(t *testing.T) {
	for version, want := range map[uint16]string{
		0:                "",
		tls.VersionTLS10: "TLS.MinVersion TLS 1.0; use tls.VersionTLS12 or tls.VersionTLS13",
		tls.VersionTLS11: "TLS.MinVersion TLS 1.1; use tls.VersionTLS12 or tls.VersionTLS13",
		tls.VersionTLS12: "",
		tls.VersionTLS13: "",
	} {
		own := Local{TLS: &tls.Config{MinVersion: version}}
		for name, server := range map[string]Validator{"local": own, "behind a Service": Service{Name: "x", Listen: own}, "automatic": Auto{Local: own}} {
			if err := server.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, version %x: got %v, want %q", name, version, err, want)
			}
		}
	}
}

func TestTheOwnTLSConfigurationWithoutAVersionRefusesOldOnes(t *testing.T) {
	announced := <-run(t, Local{Addr: "127.0.0.1", TLS: &tls.Config{}}, echo)
	for version, fails := range map[uint16]bool{tls.VersionTLS11: true, tls.VersionTLS12: false} {
		// Only the handshake: HTTP/2 refuses old versions by itself.
		conn, err := tls.Dial("tcp", strings.TrimPrefix(announced.URL, "https://"), &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if (err != nil) != fails {
			t.Errorf("version %x: got %v", version, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

func TestLongChainsOfClientCertificatesAreRefused(t *testing.T) {
	checked := 0
	server := Local{Addr: "127.0.0.1", ClientAuth: tls.RequireAnyClientCert, TLS: &tls.Config{VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
		checked++ // connections are made one after the other
		return nil
	}}}
	id := newIdentity(t, "127.0.0.1")
	pair, err := id.pair()
	if err != nil {
		t.Fatal(err)
	}
	server.TLS.Certificates = []tls.Certificate{*pair}
	server.CA, server.ClientCA = id.cert, id.cert
	announced := <-run(t, server, echo)
	for n, want := range map[int]string{1: "nobody", 20: "nobody", 200: "refused"} {
		chain := *pair
		for len(chain.Certificate) < n {
			chain.Certificate = append(chain.Certificate, pair.Certificate[0])
		}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if got := shown(announced, &chain, version); got != want {
				t.Errorf("a chain of %d certificates with version %x: got %s, want %s", n, version, got, want)
			}
		}
	}
	if checked != 4 {
		t.Errorf("the check of the user was called %d times", checked)
	}
}
