package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// run starts a server, which stops at the end of the test. It returns the announcements.
func run(t *testing.T, s Server, reviews http.HandlerFunc) <-chan ClientConfig {
	t.Helper()
	return runWith(t, s, slog.New(slog.DiscardHandler), reviews)
}

func runWith(t *testing.T, s Server, log *slog.Logger, reviews http.HandlerFunc) <-chan ClientConfig {
	t.Helper()
	if b, ok := s.(Binder); ok {
		s = b.Bind(Environment{Namespace: "ours", Log: log})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	announced := make(chan ClientConfig, 10)
	go func() { ended <- s.Serve(ctx, reviews, func(c ClientConfig) { announced <- c }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server returned %v", err)
		}
	})
	return announced
}

// echo responds with the path and the client of the request.
func echo(w http.ResponseWriter, r *http.Request) {
	name := "nobody"
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Method, r.URL.Path, name)
}

func clientOf(c ClientConfig, more ...tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CABundle)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: more},
	}}
}

func post(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestReviewPathsAreWebhookIDs(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "ca.pem")
	c := <-run(t, Local{Path: "/hooks/", CADump: dump}, echo)
	client := clientOf(c)
	for path, want := range map[string]string{
		"/check/spec.field": "200 HTTP/2.0 POST /check/spec.field nobody",
		"/a%3Ab":            "200 HTTP/2.0 POST /a:b nobody",
		"":                  "200 HTTP/2.0 POST  nobody",
	} {
		if code, text := post(t, client, c.URL+path); fmt.Sprint(code, " ", text) != want {
			t.Errorf("%s: got %d %s", path, code, text)
		}
	}
	if code, _ := post(t, client, c.URL+"x/check"); code != http.StatusNotFound {
		t.Errorf("outside of the root path: got %d", code)
	}
	if dumped, err := os.ReadFile(dump); err != nil || !bytes.Equal(dumped, c.CABundle) {
		t.Errorf("the dump is %s (%v)", dumped, err)
	}
}

func TestOldTLSIsRejected(t *testing.T) {
	c := <-run(t, Local{Addr: "127.0.0.1"}, echo)
	client := clientOf(c)
	client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	if _, err := client.Get(c.URL); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestFailedHandshakesCannotFloodTheLog(t *testing.T) {
	var lines atomic.Int32
	c := <-runWith(t, Local{Addr: "127.0.0.1"}, slog.New(counting{slog.DiscardHandler, &lines}), echo)
	for range 100 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "no handshake at all\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
		conn.Close()
	}
	if n := lines.Load(); n == 0 || n > 6 {
		t.Errorf("%d lines", n)
	}
}

// counting counts log lines of level WARN and above.
type counting struct {
	slog.Handler
	lines *atomic.Int32
}

func (c counting) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (c counting) Handle(context.Context, slog.Record) error {
	c.lines.Add(1)
	return nil
}

func TestInsecureServersUsePlainHTTP(t *testing.T) {
	c := <-run(t, Local{Insecure: true}, echo)
	if code, text := post(t, http.DefaultClient, c.URL+"/id"); code != 200 || text != "HTTP/1.1 POST /id nobody" || c.CABundle != nil {
		t.Errorf("got %d %s at %+v", code, text, c)
	}
}

// write writes an identity to files.
func write(t *testing.T, dir string, id identity) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string][]byte{cert: id.cert, key: id.key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func newIdentity(t *testing.T, names ...string) identity {
	t.Helper()
	id, err := selfSigned(names, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestClientsAreVerified(t *testing.T) {
	id := newIdentity(t, "apiserver")
	ca, _ := write(t, t.TempDir(), id)
	pair, err := id.pair()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		auth   tls.ClientAuthType
		shown  []tls.Certificate
		want   string
		refuse bool
	}{
		"known":     {0, []tls.Certificate{*pair}, "apiserver", false},
		"anonymous": {0, nil, "nobody", false},
		"required":  {tls.RequireAndVerifyClientCert, nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			announced := <-run(t, Local{ClientCAFile: ca, ClientAuth: c.auth}, echo)
			resp, err := clientOf(announced, c.shown...).Post(announced.URL, "", nil)
			if (err != nil) != c.refuse {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			defer resp.Body.Close()
			if text, _ := io.ReadAll(resp.Body); !strings.HasSuffix(string(text), c.want) {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

func TestOldVersionsAndOtherCiphersAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		server Local
		client *tls.Config
		fails  bool
	}{
		"the default takes TLS 1.2":   {Local{}, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		"TLS 1.3 only":                {Local{MinVersion: tls.VersionTLS13}, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		"TLS 1.3 only, with TLS 1.3":  {Local{MinVersion: tls.VersionTLS13}, &tls.Config{}, false},
		"one cipher suite":            {Local{CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		"one cipher suite, another's": {Local{CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Addr = "127.0.0.1"
			announced := <-run(t, c.server, echo)
			client := clientOf(announced)
			config := client.Transport.(*http.Transport).TLSClientConfig
			config.MaxVersion, config.CipherSuites = c.client.MaxVersion, c.client.CipherSuites
			resp, err := client.Post(announced.URL, "", nil)
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			if err == nil {
				resp.Body.Close()
			}
		})
	}
}

func TestContradictorySettingsAreInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		server Validator
		want   string // empty means valid
	}{
		"nothing set":                      {Local{}, ""},
		"requested certificates":           {Local{ClientAuth: tls.RequestClientCert}, ""},
		"required certificates with a CA":  {Local{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAFile: "ca.pem"}, ""},
		"required certificates, no CA":     {Local{ClientAuth: tls.RequireAndVerifyClientCert}, "requires a ClientCAFile"},
		"any certificates, no CA":          {Local{ClientAuth: tls.RequireAnyClientCert}, "use tls.RequireAndVerifyClientCert"},
		"verified certificates, no CA":     {Local{ClientAuth: tls.VerifyClientCertIfGiven}, "requires a ClientCAFile"},
		"behind a Service":                 {Service{Name: "x", Listen: Local{ClientAuth: tls.RequireAndVerifyClientCert}}, "requires a ClientCAFile"},
		"found out automatically":          {Auto{Local: Local{ClientAuth: tls.RequireAndVerifyClientCert}}, "requires a ClientCAFile"},
		"required certificates, CA data":   {Local{ClientAuth: tls.RequireAndVerifyClientCert, ClientCA: []byte("pem")}, ""},
		"required certificates, CA folder": {Local{ClientAuth: tls.RequireAndVerifyClientCert, ClientCADir: "/cas"}, ""},
		"required certificates, own TLS":   {Local{ClientAuth: tls.RequireAndVerifyClientCert, TLS: &tls.Config{ClientCAs: x509.NewCertPool()}}, ""},
		"own TLS without CAs":              {Local{ClientAuth: tls.RequireAndVerifyClientCert, TLS: &tls.Config{}}, "requires a ClientCAFile"},
		"own TLS but insecure":             {Local{Insecure: true, TLS: &tls.Config{}}, "Insecure excludes"},
		"own certificates and files":       {Local{CertFile: "c", KeyFile: "k", TLS: &tls.Config{Certificates: make([]tls.Certificate, 1)}}, "CertFile excludes"},
		"otherwise":                        {Auto{Otherwise: Service{}}, "set the Name of the Service"},
		"an old version":                   {Local{MinVersion: tls.VersionTLS11}, "MinVersion TLS 1.1"},
		"ciphers of TLS 1.3":               {Local{CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}}, "TLS_AES_128_GCM_SHA256"},
		"insecure ciphers":                 {Local{CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}}, "insecure"},
		"ciphers without a meaning":        {Local{MinVersion: tls.VersionTLS13, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, "leave them out"},
	} {
		if err := c.server.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChangedFilesAreServedWithoutDroppingConnections(t *testing.T) {
	dir := t.TempDir()
	first, second := newIdentity(t, "localhost"), newIdentity(t, "localhost")
	cert, key := write(t, dir, first)
	announced := run(t, Local{CertFile: cert, KeyFile: key, CheckEvery: time.Millisecond, Overlap: 50 * time.Millisecond}, echo)
	c := <-announced
	if !bytes.Equal(c.CABundle, first.cert) {
		t.Fatal("the first certificate was not announced")
	}
	old := clientOf(c)
	connections := 0
	old.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	post(t, old, c.URL)

	write(t, dir, second)
	both := <-announced
	if !bytes.Contains(both.CABundle, first.cert) || !bytes.Contains(both.CABundle, second.cert) || both.URL != c.URL {
		t.Fatal("the bundle does not contain both certificates")
	}
	for { // all clients that received the announcement can connect, whichever is served
		if code, _ := post(t, clientOf(both), c.URL); code != 200 {
			t.Fatalf("got %d", code)
		}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(c.URL, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		shown := pemOf(conn.ConnectionState().PeerCertificates[0].Raw)
		conn.Close()
		if bytes.Equal(shown, second.cert) {
			break
		}
	}
	if last := <-announced; !bytes.Equal(last.CABundle, second.cert) {
		t.Error("the old certificate is still announced")
	}
	if post(t, old, c.URL); connections != 1 {
		t.Errorf("an open connection was dropped: %d were made", connections)
	}
}

func TestHalfReplacedFilesAreNotServed(t *testing.T) {
	dir := t.TempDir()
	first, second := newIdentity(t, "localhost"), newIdentity(t, "localhost")
	cert, key := write(t, dir, first)
	f := files{cert: cert, key: key}
	r, err := f.renew(ring{}, time.Now())
	if err != nil || !r.current.equal(identity{first.cert, first.cert, first.key}) {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, second.key, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = f.renew(r, time.Now()); err == nil || !r.next.empty() {
		t.Error("a key of another certificate was accepted")
	}
	k := keeper{&MemoryStore{}, f, time.Minute}
	if _, err := k.turn(t.Context(), announcement{}); err == nil {
		t.Error("the server started with a key of another certificate")
	}
	k.store.Save(t.Context(), r.items(), "0")
	if r, err := k.turn(t.Context(), announcement{}); err == nil || !bytes.Equal(r.current.cert, first.cert) {
		t.Errorf("the former certificate was dropped (%v)", err)
	}
}

func TestServersStopAfterTheirReviews(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	s := Local{log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	announced := make(chan ClientConfig, 1)
	go func() {
		ended <- s.Serve(ctx, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(asked)
			<-release
		}), func(c ClientConfig) { announced <- c })
	}()
	c := <-announced
	answered := make(chan int, 1)
	go func() {
		code, _ := post(t, clientOf(c), c.URL)
		answered <- code
	}()
	<-asked
	cancel()
	select {
	case <-ended:
		t.Fatal("the server stopped too early")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if code := <-answered; code != 200 {
		t.Errorf("got %d", code)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServeReturnsConfigurationErrors(t *testing.T) {
	busy := <-run(t, Local{Addr: "127.0.0.1"}, echo)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(busy.URL, "https://"))
	var taken int
	fmt.Sscan(port, &taken)
	for name, c := range map[string]struct {
		server Server
		want   string
	}{
		"a key is missing":     {Local{CertFile: "x"}, "both CertFile and KeyFile"},
		"a file is missing":    {Local{CertFile: "/no/such", KeyFile: "/no/such"}, "read the certificate"},
		"insecure with files":  {Local{Insecure: true, CertFile: "x", KeyFile: "y"}, "Insecure excludes"},
		"the port is taken":    {Local{Addr: "127.0.0.1", Port: taken}, "listen for webhooks"},
		"a service, no name":   {Service{Namespace: "x"}, "set the Name of the Service"},
		"a service, nowhere":   {Service{Name: "x"}, "the namespace of the Service is unknown"},
		"a service, insecure":  {Service{Name: "x", Namespace: "y", Listen: Local{Insecure: true}}, "only HTTPS"},
		"a service, no keys":   {Service{Name: "x", Namespace: "y"}, "set Keys"},
		"no cluster to detect": {Auto{}, "no cluster is set"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.server.Serve(t.Context(), http.HandlerFunc(echo), func(ClientConfig) { t.Error("the server was announced") })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestServicesAreAnnouncedByName(t *testing.T) {
	store := &MemoryStore{}
	s := Service{Name: "hooks", Port: 8443, Keys: store, Listen: Local{Addr: "127.0.0.1", Path: "p/"}}
	c := <-run(t, s, echo)
	want := ServiceRef{Namespace: "ours", Name: "hooks", Path: "/p", Port: 8443}
	if c.URL != "" || *c.Service != want {
		t.Errorf("got %+v", c)
	}
	items, _, _ := store.Load(t.Context())
	leaf, err := readRing(items).current.leaf()
	if err != nil || leaf.VerifyHostname("hooks.ours.svc") != nil || leaf.Subject.CommonName != "hooks.ours.svc" {
		t.Errorf("the certificate is for %v (%v)", leaf.DNSNames, err)
	}
}

type fakeCluster struct {
	cert    *x509.Certificate
	version string
	err     error
}

func (f fakeCluster) Certificate(context.Context) (*x509.Certificate, error) { return f.cert, f.err }
func (f fakeCluster) Version(context.Context) (string, error)                { return f.version, f.err }

func TestAutoAnnouncesTheHostOfTheDetectedCluster(t *testing.T) {
	tunnel := Func(func(ctx context.Context, _ http.Handler, announce func(ClientConfig)) error {
		announce(ClientConfig{URL: "https://tunnel"})
		<-ctx.Done()
		return nil
	})
	for name, c := range map[string]struct {
		auto Auto
		want string
	}{
		"K3d":                 {Auto{Cluster: fakeCluster{version: "v1.37.1+k3s1"}}, "https://" + HostK3d + ":"},
		"K3d, not a tunnel":   {Auto{Cluster: fakeCluster{version: "v1.37.1+k3s1"}, Otherwise: tunnel}, "https://" + HostK3d + ":"},
		"something":           {Auto{Cluster: fakeCluster{version: "v1.37.1"}}, "https://localhost:"},
		"something, a tunnel": {Auto{Cluster: fakeCluster{version: "v1.37.1"}, Otherwise: tunnel}, "https://tunnel"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (<-run(t, c.auto, echo)).URL; !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	err := Auto{Cluster: fakeCluster{err: errors.New("unreachable")}}.Serve(t.Context(), http.HandlerFunc(echo), nil)
	if err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("got %v", err)
	}
}
