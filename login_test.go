package gopf

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestLoginWithServiceAccountReturnsThePodsCredentials(t *testing.T) {
	failure := errors.New("no token")
	found := &rest.Config{Host: "https://cluster"}
	cases := map[string]struct {
		cfg  *rest.Config
		err  error
		want *Login
	}{
		"in a pod":                 {cfg: found, want: &Login{Config: found, Namespace: "ns", Priority: 20}},
		"elsewhere":                {},
		"in a pod without a token": {err: failure},
	}
	for name, c := range cases {
		login := serviceAccountLogin(func() (*rest.Config, string, error) { return c.cfg, "ns", c.err })
		got, err := login(t.Context(), nil)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: got the error %v, want %v", name, err, c.err)
		}
		switch {
		case (got == nil) != (c.want == nil):
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		case got != nil && (got.Config != c.want.Config || got.Namespace != c.want.Namespace || got.Priority != c.want.Priority):
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLoginWithServiceAccountDetectsThePod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	if got, err := LoginWithServiceAccount()(t.Context(), nil); got != nil || err != nil {
		t.Errorf("outside of a pod: got %v, %v", got, err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	switch got, err := LoginWithServiceAccount()(t.Context(), nil); {
	case err == nil && got == nil:
		t.Error("in a pod: the service account was not detected")
	case got != nil && got.Config.Host != "https://192.0.2.1:443":
		t.Errorf("in a pod: got %+v", got.Config)
	}
}

func TestRunWithoutCredentialsReturnsALoginError(t *testing.T) {
	failure := errors.New("the vault is sealed")
	missing := Kubeconfig(filepath.Join(t.TempDir(), "none"), "")
	nowhere := Cluster(&rest.Config{Host: "http://127.0.0.1:1"})
	quiet := Log(slog.New(slog.DiscardHandler))
	for name, c := range map[string]struct {
		login func(context.Context, *Activity) (*Login, error) // nil for none
		run   []RunOption
		is    error // the cause, if any
		want  bool
	}{
		"a handler fails permanently":     {login: func(context.Context, *Activity) (*Login, error) { return nil, Permanent(failure) }, is: failure, want: true},
		"a handler with nothing to offer": {login: func(context.Context, *Activity) (*Login, error) { return nil, nil }, want: true},
		"credentials that expired already": {login: func(context.Context, *Activity) (*Login, error) {
			return &Login{Config: &rest.Config{}, Expires: time.Unix(1, 0)}, nil
		}, want: true},
		"a missing kubeconfig":            {run: []RunOption{missing}, want: true},
		"a cluster that is not reachable": {run: []RunOption{nowhere}, want: false},
	} {
		op := New()
		if c.login != nil {
			op.OnLogin("login", c.login)
		}
		err := op.Run(t.Context(), append(c.run, quiet)...)
		login, got := errors.AsType[*LoginError](err)
		if err == nil || got != c.want || got && login.Err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFreezePeersWithRejectedCredentialsReturnsALoginError(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refusing.Close()
	opts := []RunOption{Cluster(&rest.Config{Host: refusing.URL}), Log(slog.New(slog.DiscardHandler))}
	for name, err := range map[string]error{
		"freeze": New().PausePeers(t.Context(), PeerPause{Identity: "me", Lifetime: time.Minute}, opts...),
		"resume": New().UnpausePeers(t.Context(), "me", opts...),
	} {
		if _, ok := errors.AsType[*LoginError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
