//go:build unix

package serve_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

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

// The daemons of one tenant must not use up the processes of the operator.
func TestDaemonsOfATenantDoNotKeepOutOthers(t *testing.T) {
	dir := operator(t, "      - {id: runs, daemon: true, exec: [./runs], processes: 4}\n", map[string]string{
		"runs": `mkdir -p running; : >"running/$GOPF_NAMESPACE-$GOPF_NAME"; trap 'exit 0' TERM; while :; do sleep 0.05; done`,
	})
	c := start(t, dir)
	c.CreateNamespace(t, "attacker")
	c.CreateNamespace(t, "victim")
	for i := range 10 {
		c.Create(t, in("attacker", fmt.Sprintf("a-%d", i)))
	}
	waitFiles(t, dir, "attacker-*", 3)
	c.Create(t, in("victim", "a"))
	waitFiles(t, dir, "victim-*", 1)
	waitFiles(t, dir, "attacker-*", 3)
	c.Delete(t, things, "victim", "a")
	c.WaitGone(t, things, "victim", "a")
}

// waitFiles waits until the programs have written n files.
func waitFiles(t *testing.T, dir, pattern string, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		found, _ := filepath.Glob(filepath.Join(dir, "running", pattern))
		if len(found) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d files %s, want %d", len(found), pattern, n)
		}
	}
}
