package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/manifests"
)

// behaviour is what an example does with the object of examples/obj.yaml.
type behaviour struct {
	succeed map[string]int // how often handlers do, by their ids
}

// behaviours are those of the examples.
var behaviours = map[string]behaviour{
	"01-minimal": {succeed: map[string]int{"create_fn": 1}},
}

func TestExamples(t *testing.T) {
	folders, err := filepath.Glob("../../examples/[0-9][0-9]-*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, folder := range folders {
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			executable := build(t, folder)
			b, known := behaviours[name]
			if !known {
				t.Fatal("the table has no row for this example")
			}
			b.check(t, executable)
		})
	}
}

// check runs an example while the object is created and deleted.
func (b behaviour) check(t *testing.T, executable string) {
	t.Helper()
	manifest, err := manifests.Read("../../examples/obj.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := examples(t, namespace(t))
	p := start(t, executable, nil, "run", "--all-namespaces", "--standalone", "--verbose")
	p.await(t, "Client is configured")
	objects.create("kopf-example-1", manifest[0].Object)
	prefix := "[" + objects.namespace + "/kopf-example-1] "
	p.await(t, prefix+"Creation is in progress:")
	p.await(t, prefix+"Creation is processed:")
	p.await(t, prefix+"Something has changed, but we are not interested")
	objects.delete("kopf-example-1")
	p.await(t, prefix+"Deleted, really deleted")
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	succeeded := map[string]int{}
	for id := range b.succeed {
		succeeded[id] = len(p.lines(prefix, "Handler '"+id+"' succeeded"))
	}
	if diff := cmp.Diff(b.succeed, succeeded); diff != "" {
		t.Errorf("handlers that succeeded: -want +got\n%s", diff)
	}
	for _, bad := range []string{"[ERROR   ]", "failed permanently", "failed with an exception", "goroutine ", "DATA RACE"} {
		if lines := p.lines(bad); len(lines) > 0 {
			t.Errorf("got %q", lines)
		}
	}
}
