package stream

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestALastingRefusalIsReported(t *testing.T) {
	forbidden, failed := status(http.StatusForbidden, "Forbidden"), status(http.StatusServiceUnavailable, "ServiceUnavailable")
	always := func(a answer) []answer { return slices.Repeat([]answer{a}, 1000) }
	for name, test := range map[string]struct {
		script []answer
		from   time.Duration // 0 means never
	}{
		"forbidden":                          {always(forbidden), RefusalGrace},
		"unavailable":                        {always(failed), 0},
		"forbidden, and allowed soon":        {[]answer{forbidden, forbidden, forbidden, list("1", "")}, 0},
		"forbidden, and soon unavailable":    {slices.Concat([]answer{forbidden, forbidden}, always(failed)), 0},
		"unavailable, and forbidden later":   {slices.Concat(slices.Repeat([]answer{failed}, 10), always(forbidden)), RefusalGrace},
		"another failure starts a new count": {slices.Concat([]answer{forbidden, forbidden, failed}, always(forbidden)), RefusalGrace},
	} {
		s := &server{script: test.script}
		var told []time.Duration
		observe(t, time.Minute, s, func(c *Config) {
			c.OnRefusal(func() { told = append(told, time.Since(s.started)) })
		})
		if test.from == 0 && len(told) > 0 || test.from > 0 && (len(told) != 1 || told[0] < test.from) {
			t.Errorf("%s: reported at %v", name, told)
		}
	}
}

// The end comes before the grace period is over.
func TestARefusalIsNotReportedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := false
		c := Config{}
		end := c.OnRefusal(func() { told = true })
		c.Status(Status{State: Failing, Err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)})
		time.Sleep(RefusalGrace - time.Second)
		end()
		time.Sleep(time.Minute)
		if told {
			t.Error("it was reported")
		}
	})
}
