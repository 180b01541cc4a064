package vitals

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/admission"
)

func TestReviewsCountByTheirOutcomes(t *testing.T) {
	v, err := New(Config{Metrics: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []admission.Observation{
		{ID: "check", Allowed: true, Code: http.StatusOK},
		{ID: "check", Code: http.StatusForbidden},
		{ID: "check", Code: http.StatusBadRequest},
		{ID: "check", Code: http.StatusInternalServerError},
		{ID: "check", Code: http.StatusServiceUnavailable},
		{ID: "check", Code: admission.CodeGone},
		{Code: http.StatusNotFound},
	} {
		v.Reviewed(o)
	}
	page := httptest.NewRecorder()
	v.Metrics().Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for outcome, want := range map[string]string{"allowed": "1", "denied": "2", "failed": "3"} {
		if line := `gopf_webhook_reviews_total{handler="check",outcome="` + outcome + `"} ` + want; !strings.Contains(page.Body.String(), line) {
			t.Errorf("there is no %s", line)
		}
	}
}
