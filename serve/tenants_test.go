//go:build unix

package serve_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// in returns a thing in a namespace.
func in(namespace, name string) *unstructured.Unstructured {
	o := thing(name, map[string]any{})
	o.SetNamespace(namespace)
	return o
}

func isDone(o *unstructured.Unstructured) bool {
	done, _, _ := unstructured.NestedBool(o.Object, "status", "done")
	return done
}

// Handlers with one attempt fail if a call counts that the program of another tenant spoiled.
func TestObjectsOfATenantUseUpNoAttemptsOfOthers(t *testing.T) {
	for processes := range 3 {
		t.Run(fmt.Sprintf("processes: %d", processes), func(t *testing.T) {
			dir := operator(t, fmt.Sprintf("      - {id: made, on: [create], exec: [./made], keep: true, processes: %d, retries: 1}\n", processes), map[string]string{"made": `
while read -r line; do
  id=$(expr "$line" : '{"id":\([0-9]*\)')
  case "$line" in
  *'"name":"exits-'*) exit 1;;
  *'"name":"wrong-'*) echo '{"id": 0}';;
  *'"name":"long-'*) head -c 5000000 /dev/zero; echo;;
  *) echo "{\"id\": $id, \"status\": {\"done\": true}}";;
  esac
done
`})
			c := start(t, dir)
			c.CreateNamespace(t, "attacker")
			c.CreateNamespace(t, "victim")
			for i := range 5 {
				for _, way := range []string{"exits", "wrong", "long"} {
					c.Create(t, in("attacker", fmt.Sprintf("%s-%d", way, i)))
				}
				c.Create(t, in("victim", fmt.Sprintf("good-%d", i)))
			}
			for i := range 5 {
				c.Wait(t, things, "victim", fmt.Sprintf("good-%d", i), isDone)
			}
		})
	}
}
