package serve

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
)

// tokenFor returns a token in the form of a service account's.
func tokenFor(subject string) string {
	claims, _ := json.Marshal(map[string]any{"sub": subject})
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

func TestAProgramInAPodGetsATokenThatExpiresSoon(t *testing.T) {
	var request authenticationv1.TokenRequest
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": {"token": "short"}}`)
	}))
	defer server.Close()
	own := tokenFor("system:serviceaccount:ns:operator")
	user, err := userOf(t.Context(), &rest.Config{Host: server.URL, BearerToken: own})
	if err != nil || user.Token != "short" {
		t.Fatalf("got %v, %v", user, err)
	}
	if path != "POST /api/v1/namespaces/ns/serviceaccounts/operator/token" || *request.Spec.ExpirationSeconds != 600 {
		t.Errorf("the request is %s %v", path, request.Spec)
	}
}

func TestAProgramOutsideOfPodsGetsTheCredentialsOfTheOperator(t *testing.T) {
	for _, token := range []string{"opaque", "a.b.c", tokenFor("alice")} {
		if user, err := userOf(t.Context(), &rest.Config{Host: "http://none.test", BearerToken: token}); err != nil || user.Token != token {
			t.Errorf("%s: got %v, %v", token, user, err)
		}
	}
}
