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

// Messages of the API server quote values, and name all wrong fields.
func TestErrorsWithLongTextsTakeLittleMemory(t *testing.T) {
	cause := `{"reason":"FieldValueInvalid","message":"Invalid value: ` + strings.Repeat("x", 1000) + `: field is immutable","field":"` + strings.Repeat("f", 1000) + `"}`
	body := `{"kind":"Status","reason":"Invalid","message":"it is invalid: ` + strings.Repeat("y", 10_000) + `: field is immutable","details":{"name":"a","causes":[` +
		strings.Repeat(cause+",", 25) + cause + `]}}`
	if len(body) > maxErrorBody {
		t.Fatalf("a response of %d bytes", len(body))
	}
	many := `{"kind":"Status","reason":"Invalid","message":"no","details":{"causes":[` + strings.Repeat(`{"field":"a"},`, 1000) + `{"field":"a"}]}}`
	for name, c := range map[string]struct {
		body   string
		causes int
	}{"long": {body, 26}, "many": {many, maxCauses}} {
		client, _ := answers(reply(http.StatusUnprocessableEntity, c.body)).client(t)
		status, _ := Refused(get(t.Context(), client))
		size := len(status.Message)
		for _, cause := range status.Details.Causes {
			size += len(cause.Message) + len(cause.Field)
		}
		if size > 20_000 || len(status.Details.Causes) != c.causes {
			t.Errorf("%s: %d bytes are kept, in %d causes", name, size, len(status.Details.Causes))
		}
		if name == "long" && (!strings.HasPrefix(status.Message, "it is invalid: y") || !strings.HasSuffix(status.Message, ": field is immutable") ||
			!strings.HasSuffix(status.Details.Causes[25].Message, ": field is immutable")) {
			t.Errorf("the message is %s", status.Message)
		}
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
