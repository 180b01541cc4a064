package vectors_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// authHeaders sends a request with the credentials of the case. The
// differences:
//   - there is no scheme in a configuration; where one is needed, the transport
//     is wrapped, as users would do it;
//   - a user without a password is sent with an empty one, as kubectl does;
//   - basic_auth is seen as the header that comes of it;
//   - a user together with a token is an error. Kopf's HTTP library refuses it if
//     there is a password.
func authHeaders(t *testing.T, v vector) {
	c := decode[struct {
		Info    struct{ Scheme, Token, Username, Password string }
		Headers map[string]string
	}](t, v.JSON)
	cfg := &rest.Config{BearerToken: c.Info.Token, Username: c.Info.Username, Password: c.Info.Password}
	if c.Info.Scheme != "" {
		cfg.BearerToken = ""
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return addHeader{next, "Authorization", strings.TrimSpace(c.Info.Scheme + " " + c.Info.Token)}
		})
	}
	if c.Info.Username != "" && cfg.BearerToken != "" {
		if client, err := kube.NewClient(cfg, kube.DefaultOptions()); err == nil {
			client.Close()
			t.Error("a token and a user are taken together")
		}
		return
	}
	want := c.Headers["Authorization"]
	if c.Info.Username != "" && want == "" { // basic_auth, which is a header in the end
		want = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Info.Username+":"+c.Info.Password))
	}
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	cfg.Host = server.URL
	client, err := kube.NewClient(cfg, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Get(t.Context(), kube.Target{Info: kind.Info{Version: "v1", Plural: "nodes"}, Name: "n"}); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got the header %q, want %q", got, want)
	}
}

type addHeader struct {
	next        http.RoundTripper
	name, value string
}

func (a addHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(a.name, a.value)
	return a.next.RoundTrip(r)
}
