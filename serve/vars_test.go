package serve

import (
	"encoding/json"
	"reflect"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"gopf.dev/gopf/serve/call"
)

// Users and reviews are converted without their JSON, whose copies would multiply the memory of
// large reviews.
func TestVariablesOfReviewsAreThoseOfTheirJSON(t *testing.T) {
	for name, user := range map[string]authenticationv1.UserInfo{
		"empty": {},
		"a user": {
			Username: "<a>", UID: "1", Groups: []string{"b", "c"}, Extra: map[string]authenticationv1.ExtraValue{"d": {"e", "f"}, "g": {}},
		},
	} {
		for _, subresource := range []string{"", "status"} {
			review := call.Review{Operation: "CREATE", Subresource: subresource, User: user, DryRun: true}
			want, seen := decoded(t, review), review
			seen.User = userVars(user)
			if got := reviewVars(&seen); !reflect.DeepEqual(want, any(got)) {
				t.Errorf("%s, subresource %q: got %v, want %v", name, subresource, got, want)
			}
		}
	}
}

func decoded(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
