package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// embedded is the example that runs its operator without package cli.
const embedded = "12-embedded"

// loadingExamples has a function for each example that builds and describes it once for all
// tests.
var loadingExamples = sync.OnceValues(func() (map[string]func() (*deployment, error), error) {
	programs, err := filepath.Glob("../../examples/*/main.go")
	all := map[string]func() (*deployment, error){}
	for _, path := range programs {
		folder := filepath.Dir(path)
		all[filepath.Base(folder)] = sync.OnceValues(func() (*deployment, error) {
			return loadDeployment(context.Background(), folder, true, os.Stderr)
		})
	}
	delete(all, embedded)
	return all, err
})

func loadedExample(t *testing.T, name string) *deployment {
	t.Helper()
	all, err := loadingExamples()
	if err != nil || all[name] == nil {
		t.Fatalf("there is no example %s: %v", name, err)
	}
	d, err := all[name]()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// forExamples runs a test for each example, in parallel.
func forExamples(t *testing.T, test func(*testing.T, *deployment)) {
	t.Helper()
	all, err := loadingExamples()
	if err != nil || len(all) < 20 {
		t.Fatalf("there are only %d examples: %v", len(all), err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, loadedExample(t, name))
		})
	}
}

func TestTheManifestsOfTheExamplesAreGenerated(t *testing.T) {
	t.Parallel()
	forExamples(t, func(t *testing.T, d *deployment) {
		if len(d.notes) > 0 {
			t.Errorf("the manifests are not complete: %v", d.notes)
		}
		files, err := d.files()
		if err != nil {
			t.Fatal(err)
		}
		present, err := filepath.Glob(filepath.Join(d.folder, "*"))
		if err != nil || len(present) != len(files) || len(files) < 2 {
			t.Errorf("%s has the files %v, want %v (%v)", d.folder, present, slices.Sorted(maps.Keys(files)), err)
		}
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(d.folder, name))
			if err != nil {
				t.Errorf("run 'gopf manifests %s': %v", d.path, err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run 'gopf manifests %s':\n%s", d.path, diff)
			}
		}
	})
}

func TestProgramsWithoutTheCommandsOfPackageCLIAreNotRun(t *testing.T) {
	_, err := loadDeployment(t.Context(), "../../examples/"+embedded, false, os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "does not use package gopf.dev/gopf/cli") {
		t.Errorf("got %v", err)
	}
}

func TestVerifyNamesEveryDeletedRuleAndItsSource(t *testing.T) {
	source := regexp.MustCompile(` is needed by ((handler \S+ at|gopf\.May at) \S+\.go:[0-9]+|setting \w+)`)
	forExamples(t, func(t *testing.T, d *deployment) {
		lines := strings.Split(string(d.model.Access()), "\n")
		all := rulesIn(lines)
		if len(all) < 8 {
			t.Fatalf("there are only %d rules", len(all))
		}
		for _, r := range all {
			text, verb := r.without(lines)
			group, resource, _ := strings.Cut(ruleAt(lines, r.line), "/")
			plural, sub, _ := strings.Cut(resource, "/")
			want := "missing: " + verb + " " + plural
			if group != "" {
				want += "." + group
			}
			if sub != "" {
				want += "/" + sub
			}
			var out bytes.Buffer
			err := d.compareRoles("rbac.yaml", []byte(text), &out)
			got := out.String()
			if err == nil || strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, want+" ") || !source.MatchString(got) {
				t.Errorf("without line %d (%s): got %v, %q, want %q", r.line, verb, err, got, want)
			}
		}
	})
}

func TestVerifyReportsAddedRules(t *testing.T) {
	forExamples(t, func(t *testing.T, d *deployment) {
		lines := strings.Split(string(d.model.Access()), "\n")
		role := regexp.MustCompile(`^kind: (ClusterRole|Role)$`)
		roles, adds := 0, 0
		for i, line := range lines {
			var added []string
			switch verbs, isRule := verbsIn(line); {
			case role.MatchString(line):
				roles++
				at := i + slices.Index(lines[i:], "rules:")
				added = slices.Insert(slices.Clone(lines), at+1, `- {apiGroups: [""], resources: ["limitranges"], verbs: [deletecollection]}`)
			case isRule: // one more verb
				added = slices.Clone(lines)
				added[i] = fmt.Sprintf("  verbs: [%s, deletecollection]", strings.Join(verbs, ", "))
			default:
				continue
			}
			adds++
			var out bytes.Buffer
			err := d.compareRoles("rbac.yaml", []byte(strings.Join(added, "\n")), &out)
			if got := out.String(); err == nil || strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "unused: deletecollection ") {
				t.Errorf("with one more rule at line %d: got %v, %q", i, err, got)
			}
		}
		if roles == 0 || adds < roles+4 {
			t.Errorf("only %d roles and %d rules were changed", roles, adds)
		}
	})
}
