package gopf

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"
)

func TestLoginWithServiceAccountOffersWhatThePodHas(t *testing.T) {
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

func TestLoginWithServiceAccountLooksForThePod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	if got, err := LoginWithServiceAccount()(t.Context(), nil); got != nil || err != nil {
		t.Errorf("outside of a pod: got %v, %v", got, err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	switch got, err := LoginWithServiceAccount()(t.Context(), nil); {
	case err == nil && got == nil:
		t.Error("in a pod: the service account was not looked for")
	case got != nil && got.Config.Host != "https://192.0.2.1:443":
		t.Errorf("in a pod: got %+v", got.Config)
	}
}
