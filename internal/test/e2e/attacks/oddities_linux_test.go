package attacks_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// oddities makes objects that are valid and unusual. The operator must handle those that
// the API server accepts.
func (s *scene) oddities() []string {
	long := strings.Repeat("n", 253)
	var finalizers, owners []string
	for i := range size(200, 2000) {
		finalizers = append(finalizers, fmt.Sprintf(`"example.com/f%d"`, i))
	}
	for i := range 200 {
		owners = append(owners, fmt.Sprintf(`{"apiVersion":"attacks.gopf.dev/v1","kind":"Plain","name":"owners","uid":"00000000-0000-0000-0000-%012d"}`, i))
	}
	var made [][2]string // resource and name
	const field = `{"field":"x"}`
	for name, spec := range map[string][]string{
		long:         {field},
		"finalizers": {field, `"finalizers":[` + strings.Join(finalizers, ",") + `]`},
		"owners":     {field, `"ownerReferences":[` + strings.Join(owners, ",") + `]`},
		"control":    {`{"field":"\u0000\u001b[31m\nERROR forged \u202e\ud800"}`},
		"keys":       {field, `"labels":{"x":"","a.b/c-d_e.f":"1"},"annotations":{"kopf.zalando.org/pause.x":"x","kopf.zalando.org/` + strings.Repeat("k", 63) + `":"{}","kopf.zalando.org/create":"[]","kopf.zalando.org/update":"null"}`},
		"numbers":    {`{"field":"x","n":[1e308,-0.0,123456789012345678901234567890,1E-400]}`},
		"field-map":  {`{"field":{"a":[null,{}]}}`},
		"records":    {field, `"annotations":{"kopf.zalando.org/create":"{\"started\":\"-9999-01-01\",\"retries\":-1,\"delayed\":{}}","kopf.zalando.org/gopf.bound":"` + strings.Repeat("f", 1000) + `"}`},
		"time":       {field, `"annotations":{"kopf.zalando.org/create":"{\"started\":\"0001-01-01T00:00:00Z\",\"purpose\":\"create\",\"retries\":9223372036854775807,\"delayed\":\"0000-00-00\"}"}`},
	} {
		for _, resource := range []string{targets, plains} {
			if err := s.attacker.sendRaw(context.Background(), resource, name, spec[0], spec[1:]...); err != nil {
				s.Logf("%.20s: %.200s", name, err)
				continue
			}
			made = append(made, [2]string{resource, name})
		}
	}
	for _, odd := range made {
		if odd[1] == "owners" { // the garbage collector deletes it, because its owners do not exist
			kit.Await(s.T, "the object with many owners is handled", func() bool { return s.logs(`"handled"`, `"`+odd[1]+`"`, `"`+s.attacker.Name+`"`) })
			continue
		}
		s.attacker.await("the odd object is handled", odd[0], odd[1], handled)
	}
	s.attacker.Create(plains, "status", fields{"spec": fields{"field": "x"}, "status": fields{"create": []any{1}, "update": "text", "kopf": fields{"progress": "x"}}})
	s.attacker.Create(plains, "no-map", fields{"spec": fields{"field": "x"}})
	s.attacker.await("the odd object is handled", plains, "status", handled)
	if s.op.Log.Has("\nERROR forged") {
		s.Error("a value forged a line of the log")
	}
	// Foreign finalizers hold the deletion until their owner removes them.
	s.check(s.attacker.Of(plains).Delete(context.Background(), "finalizers", metav1.DeleteOptions{}))
	time.Sleep(500 * time.Millisecond) // the deletion is handled meanwhile
	for _, resource := range []string{targets, plains} {
		if s.attacker.Get(resource, "finalizers") != nil {
			s.check(s.attacker.TryPatch(resource, "finalizers", fields{"metadata": fields{"finalizers": nil}}))
		}
	}
	return nil
}
