package kube

import (
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestErrorMessages(t *testing.T) {
	long := strings.Repeat("ä", 300)
	cases := map[string]struct {
		code   int
		body   string
		want   string
		wantIs func(error) bool
	}{
		"a status":                       {409, `{"kind":"Status","reason":"AlreadyExists","message":"it is there"}`, "it is there", apierrors.IsAlreadyExists},
		"a status without a reason":      {404, `{"kind":"Status","message":"not there"}`, "not there", apierrors.IsNotFound},
		"a status with another code":     {403, `{"kind":"Status","code":404,"reason":"Forbidden","message":"no"}`, "no", apierrors.IsForbidden},
		"a status that claims success":   {422, `{"kind":"Status","status":"Success","message":"no"}`, "no", apierrors.IsInvalid},
		"text":                           {400, "  go away\n", "go away", apierrors.IsBadRequest},
		"long text":                      {400, long, strings.Repeat("ä", 253) + "...", apierrors.IsBadRequest},
		"nothing":                        {404, "", "the server could not find the requested resource (get pods a)", apierrors.IsNotFound},
		"JSON of another kind is hidden": {404, `{"kind":"Secret"}`, "the server could not find the requested resource (get pods a)", apierrors.IsNotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client, _ := answers(reply(c.code, c.body)).client(t)
			err := get(t.Context(), client)
			status, _ := Refused(err)
			if status.Message != c.want || int(status.Code) != c.code {
				t.Errorf("got %d %q, want %d %q", status.Code, status.Message, c.code, c.want)
			}
			if !c.wantIs(err) {
				t.Errorf("the reason %q does not match the code", status.Reason)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		header string
		want   int32
		ok     bool
	}{
		"none":            {"", 0, false},
		"seconds":         {"5", 5, true},
		"fractions":       {"5.9", 5, true},
		"a date":          {now.Add(90 * time.Second).Format(http.TimeFormat), 90, true},
		"a date long ago": {now.Add(-time.Hour).Format(http.TimeFormat), 0, true},
		"nonsense":        {"soon", 0, false},
		"negative":        {"-1", 0, false},
		"too large":       {"1e300", 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := retryAfter(http.Header{"Retry-After": {c.header}}, now)
			if got != c.want || ok != c.ok {
				t.Errorf("got %v, %v, want %v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}
