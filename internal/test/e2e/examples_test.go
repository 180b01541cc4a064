package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/dev/manifests"
)

// behaviour is what an example does with the object of examples/obj.yaml.
type behaviour struct {
	succeed map[string]int // how often handlers do, by their ids
	fail    map[string]int // how often they fail for good; nobody else does
	errors  bool           // whether error lines are to be expected even so
	deletes bool           // whether there are handlers that deletions wait for

	// Lines that are waited for before the next step; where there are none,
	// those of an operator with handlers of creation.
	created, deleted []string

	// own is the whole test of an example that the rest is not for.
	own func(t *testing.T, executable string)
}

// behaviours are those of the examples.
var behaviours = map[string]behaviour{
	"01-minimal":  {succeed: map[string]int{"create_fn": 1}},
	"02-children": {own: aChildIsDeletedWithItsOwner},
	"03-exceptions": {
		succeed: map[string]int{"eventual_success_with_a_few_messages": 1},
		fail: map[string]int{
			"eventual_failure_with_tracebacks":    1,
			"instant_failure_with_traceback":      1,
			"instant_failure_with_only_a_message": 1,
		},
		errors: true,
	},
	"04-events": {succeed: map[string]int{"create_fn": 1}},
	"05-handlers": {
		succeed: map[string]int{
			"create_fn_1": 1, "create_fn_2": 1, "field_fn/spec.field": 1, "delete_fn_1": 1, "delete_fn_2": 1,
			"update_fn": 0, "resume_fn_1": 0, "resume_fn_2": 0,
		},
		deletes: true,
	},
	"06-peering":     {own: onePeerWorksAtATime},
	"07-subhandlers": {succeed: map[string]int{"create_fn/item1": 1, "create_fn/item2": 1, "create_fn": 1}},
	"08-events": {
		succeed: map[string]int{"normal_event_fn": 2},
		errors:  true,
		created: []string{"An event was received."},
		deleted: []string{"An event was received. type=DELETED"},
	},
	"09-testing":            {succeed: map[string]int{"create_fn": 1}},
	"10-builtins":           {own: podsAreKilledUnlessTheyAreDeleted},
	"11-filtering-handlers": {own: onlyFittingHandlersAreCalled},
	"12-embedded":           {own: theApplicationRunsItsOperator},
	"13-hooks":              {own: hooksAreCalledInTheLifeOfTheOperator},
	"14-daemons":            {own: daemonsFailThreeTimesAndThenRun},
	"15-timers":             {own: timersWaitUntilObjectsAreIdle},
	"16-indexing":           {own: indicesFollowPods},
	"17-admission":          {own: requestsAreReviewed},
	"18-website":            {own: websitesHaveChildrenAndAreRegistered},
	"19-levels":             {own: shopsHaveBranchesWithDeployments},
	"20-other-namespaces":   {own: teamsHaveContactsInTheirNamespaces},
	"99-all-at-once": {
		succeed: map[string]int{
			"create_1": 1, "create_2": 1, "create_pod": 1, "delete": 1,
			"startup_fn_simple": 1, "startup_fn_retried": 1, "cleanup_fn": 1,
		},
		errors:  true,
		deletes: true,
		created: []string{"Creation is processed:", "This pod is special for us."},
	},
}

func TestExamples(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../../examples/[0-9][0-9]-*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	executables := t.TempDir()
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", executables, "../../../examples/...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, folder := range folders {
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, known := behaviours[name]
			if !known {
				t.Fatal("the table has no row for this example")
			}
			executable := filepath.Join(executables, name)
			if nested, _ := filepath.Glob(filepath.Join(folder, "go.mod")); nested != nil {
				executable = build(t, folder)
			}
			if b.own == nil {
				b.check(t, executable)
			} else {
				b.own(t, executable)
			}
		})
	}
}

// startExample starts an example in a namespace of its own.
func startExample(t *testing.T, executable string, args ...string) (*process, objects) {
	t.Helper()
	return startExampleWith(t, executable, nil, args...)
}

// startExampleWith starts an example with variables of the environment.
func startExampleWith(t *testing.T, executable string, env []string, args ...string) (*process, objects) {
	t.Helper()
	objects := examples(t, namespace(t))
	args = append([]string{"run", "--namespace", objects.namespace, "--standalone", "--verbose"}, args...)
	p := start(t, executable, env, args...)
	p.Log.WaitFor(t, "Client is configured")
	return p, objects
}

// check runs an example while the object is created and deleted.
func (b behaviour) check(t *testing.T, executable string) {
	t.Helper()
	p, objects := startExample(t, executable)
	prefix := createExample(objects)
	if b.created == nil {
		b.created = []string{prefix + "Creation is in progress:", prefix + "Creation is processed:", prefix + "Something has changed, but we are not interested"}
	}
	for _, line := range b.created {
		p.Log.WaitFor(t, line)
	}
	objects.delete("kopf-example-1")
	if b.deleted == nil {
		b.deleted = []string{prefix + "Deleted, really deleted"}
	}
	for _, line := range b.deleted {
		p.Log.WaitFor(t, line)
	}
	p.end(t)
	if diff := cmp.Diff(b.succeed, p.successes(b.succeed)); diff != "" {
		t.Errorf("handlers that succeeded: -want +got\n%s", diff)
	}
	p.checkFailures(t, b)
	if b.deletes {
		for _, line := range []string{"Adding the finalizer", "Deletion is in progress:"} {
			if len(p.Log.With(prefix+line)) == 0 {
				t.Errorf("there is no line %q", line)
			}
		}
	}
}

// createExample creates the object that the examples are about, and returns how
// lines about it begin.
func createExample(objects objects) (prefix string) {
	objects.t.Helper()
	manifest, err := manifests.Read("../../../examples/obj.yaml")
	if err != nil {
		objects.t.Fatal(err)
	}
	objects.create("kopf-example-1", manifest[0].Object)
	return "[" + objects.namespace + "/kopf-example-1] "
}

// end stops the process, which must have nothing against it.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
}

// successes are how often the handlers with the ids have succeeded.
func (p *process) successes(of map[string]int) map[string]int {
	if of == nil {
		return nil
	}
	succeeded := map[string]int{}
	for id := range of {
		succeeded[id] = len(p.Log.With("'" + id + "' succeeded"))
	}
	return succeeded
}

// checkFailures compares what went wrong with what should have.
func (p *process) checkFailures(t *testing.T, b behaviour) {
	t.Helper()
	failed := slices.Concat(p.Log.With("[ERROR", "' failed permanently"), p.Log.With("[ERROR", "' failed with an exception and will stop"))
	wanted := 0
	for id, times := range b.fail {
		wanted += times
		got := 0
		for _, line := range failed {
			if strings.Contains(line, " '"+id+"' failed ") {
				got++
			}
		}
		if got != times {
			t.Errorf("%s failed for good %d times", id, got)
		}
	}
	if len(failed) != wanted {
		t.Errorf("only %v should have failed for good, but there is %q", slices.Sorted(maps.Keys(b.fail)), failed)
	}
	bad := []string{"DATA RACE", "goroutine 1 ["}
	if !b.errors {
		bad = append(bad, "[ERROR   ]", "goroutine ")
	}
	for _, text := range bad {
		if lines := p.Log.With(text); len(lines) > 0 {
			t.Errorf("got %q", lines)
		}
	}
}
