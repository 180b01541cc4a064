package apply

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAdviceForRefusals(t *testing.T) {
	status := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
	}
	cases := map[string]struct {
		err  error
		want string
	}{
		"own webhook":     {status(403, `admission webhook "check.auto.kopf.dev" denied the request: no`), "the operator's own webhook"},
		"another webhook": {status(403, `admission webhook "policy.example.com" denied the request: no`), "configure that webhook to allow it"},
		"permission":      {status(403, `pods "a" is forbidden: User "x" cannot patch`), "grant the operator this permission"},
		"schema":          {status(422, "spec.size: Invalid value"), "the schema of the resource"},
		"bad request":     {status(400, "bad"), "the schema of the resource"},
		"too large":       {status(413, "too large"), "store less"},
		"other":           {status(405, "no"), ""},
		"no response":     {errors.New("lost"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Advice(c.err, "auto.kopf.dev")
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
