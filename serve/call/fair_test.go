//go:build unix

package call

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// A tenant with many objects must not delay the calls for the objects of others. A network
// peer must not delay the reviews of an API server by namespaces that it invents.
func TestTenantsTakeTurnsForPrograms(t *testing.T) {
	processes := func(n int) func(*spec.Call) { return func(c *spec.Call) { c.Processes = n } }
	reviewed := func(client, namespace string) *Request {
		r := request(nil)
		r.Input.Review, r.Namespace = &Review{Operation: "CREATE", Client: client}, namespace
		return r
	}
	inNamespace := func(namespace string) *Request {
		r := request(nil)
		r.Namespace = namespace
		return r
	}
	for who, requests := range map[string]struct {
		many func(i int) *Request
		few  *Request
	}{
		"namespaces":               {func(int) *Request { return inNamespace("many") }, inNamespace("other")},
		"clients of reviews":       {func(i int) *Request { return reviewed("10.0.0.1", strconv.Itoa(i)) }, reviewed("10.0.0.2", "other")},
		"namespaces of one client": {func(int) *Request { return reviewed("10.0.0.2", "many") }, reviewed("10.0.0.2", "other")},
	} {
		for name, c := range map[string]Caller{
			"one process":        NewExec(script("sleep 0.03", processes(1))),
			"several processes":  NewExec(script("sleep 0.03", processes(2))),
			"one kept program":   kept(`sleep 0.03; printf '{"id": %d}\n' $id`),
			"some kept programs": kept(`sleep 0.03; printf '{"id": %d}\n' $id`, processes(2)),
		} {
			t.Run(who+", "+name, func(t *testing.T) {
				defer c.Close()
				var wg sync.WaitGroup
				defer wg.Wait()
				var ended atomic.Int32
				for i := range 12 {
					wg.Go(func() {
						if _, err := c.Call(t.Context(), requests.many(i)); err != nil {
							t.Error(err)
						}
						ended.Add(1)
					})
				}
				time.Sleep(20 * time.Millisecond) // most of them wait
				if _, err := c.Call(t.Context(), requests.few); err != nil {
					t.Error(err)
				}
				if n := ended.Load(); n > 6 {
					t.Errorf("the other one waited for %d calls", n)
				}
			})
		}
	}
}

func TestHandlersDoNotSeeTheClientOfAReview(t *testing.T) {
	r := request(nil)
	r.Input.Review = &Review{Operation: "CREATE", Client: "10.0.0.1"}
	if _, err := NewExec(script(`if grep -q 10.0.0.1; then exit 1; fi`)).Call(t.Context(), r); err != nil {
		t.Error(err)
	}
}
