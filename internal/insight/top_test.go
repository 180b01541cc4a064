package insight

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/kind"
)

func TestErrorsOfTheMetricsOfAPodSayWhatToDo(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	e := Metrics{Pod: "web-0", Port: 9090}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"plain HTTP to a secure port": {apierrors.NewBadRequest("Client sent an HTTP request to an HTTPS server."),
			"run 'kubectl port-forward --namespace ns pod/web-0 9090', and use --url https://localhost:9090/metrics --insecure-skip-tls-verify"},
		"without a token":   {apierrors.NewUnauthorized("a token is required"), "the API server forwards no token"},
		"no permission":     {apierrors.NewForbidden(pods, "web-0", errors.New("no")), "the verb get on pods/proxy"},
		"no pod":            {apierrors.NewNotFound(pods, "web-0"), "--namespace"},
		"nothing listens":   {apierrors.NewServiceUnavailable("connection refused"), "start the operator with --metrics=:9090, or name the port of its metrics with --port"},
		"something unknown": {errors.New("boom"), ""},
	} {
		if got := e.advice("ns", test.err); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestAMissingObjectMayBeInAnotherNamespace(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "x")
	if got := absence(kind.Info{Namespaced: true}, missing); !strings.Contains(got, "--namespace") {
		t.Errorf("got %q", got)
	}
	if got := absence(kind.Info{}, missing) + absence(kind.Info{Namespaced: true}, errors.New("boom")); got != "" {
		t.Errorf("got %q", got)
	}
}
