//go:build unix

package devloop

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	edits   = 20
	objects = 100
)

// churn changes all objects in turn until stop is called, which returns their last values.
func churn(s *session) (stop func() map[string]string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	last := map[string]string{}
	var work sync.WaitGroup
	work.Go(func() {
		all := s.objects.Namespace("default")
		for i := 0; ctx.Err() == nil; i++ {
			name, value := fmt.Sprint("o", i%objects), fmt.Sprint("v", i)
			var err error
			if i < objects {
				_, err = all.Create(s.t.Context(), &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "loop.example.com/v1", "kind": "Loop",
					"metadata": map[string]any{"name": name}, "spec": map[string]any{"who": value},
				}}, metav1.CreateOptions{})
			} else {
				_, err = all.Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"who":"`+value+`"}}`), metav1.PatchOptions{})
			}
			if err != nil {
				s.t.Errorf("change %s: %v", name, err)
				return
			}
			last[name] = value
			time.Sleep(10 * time.Millisecond)
		}
	})
	return func() map[string]string { cancel(); work.Wait(); return last }
}

var call = regexp.MustCompile(`^(\d+) (\S+) "(.*)" "(.*)"$`)

// check reads the calls of all handlers. Each call must begin where the previous one of the
// object ended: no change is handled twice, and none is lost.
func check(t *testing.T, calls string) (seen map[string]string) {
	t.Helper()
	seen = map[string]string{}
	for line := range strings.Lines(calls) {
		m := call.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Fatalf("not a call: %q", line)
		}
		if m[3] != seen[m[2]] || m[4] == seen[m[2]] {
			t.Errorf("%s: the handler was called for %q → %q after it had handled %q", m[2], m[3], m[4], seen[m[2]])
		}
		seen[m[2]] = m[4]
	}
	return seen
}

// While 100 objects change constantly, the operator is replaced 20 times. No handler is called
// twice for a change, no change is lost, and the API server is the same process.
func TestEditsUnderChurnRepeatAndLoseNothing(t *testing.T) {
	for _, kind := range servers {
		t.Run(kind, func(t *testing.T) { editUnderChurn(t, kind) })
	}
}

func editUnderChurn(t *testing.T, kind string) {
	t.Helper()
	s := begin(t, kind)
	server := s.server()
	stop := churn(s)
	s.eventually("all objects are created", func() bool { return strings.Contains(s.handled(), fmt.Sprint(" o", objects-1, " ")) })
	var took []time.Duration
	for n := 1; n <= edits; n++ {
		saved := time.Now()
		s.replace("operator.go", fmt.Sprint("const edit = ", n-1), fmt.Sprint("const edit = ", n))
		s.eventually(fmt.Sprint("edit ", n, " is live"), func() bool { return strings.Contains(s.handled(), fmt.Sprint("\n", n, " ")) })
		took = append(took, time.Since(saved))
	}
	last := stop()
	var final string
	s.eventually("the last changes are handled", func() bool {
		final = s.handled()
		for name, value := range last {
			if !strings.Contains(final, fmt.Sprintf(" %s ", name)) || !strings.Contains(final, fmt.Sprintf("%q\n", value)) {
				return false
			}
		}
		return true
	})
	seen := check(t, final)
	for name, value := range last {
		if seen[name] != value {
			t.Errorf("%s: the last handled value is %q, want %q", name, seen[name], value)
		}
	}
	if now := s.server(); now != server {
		t.Errorf("the API server is process %s, and was %s", now, server)
	}
	if n := strings.Count(s.said.String(), "→ swapped"); n != edits {
		t.Errorf("the operator was swapped %d times, want %d", n, edits)
	}
	slices.Sort(took)
	t.Logf("from save to the first call: median %v, p95 %v; %d calls", took[edits/2], took[edits*95/100-1], strings.Count(final, "\n"))
	s.press("q")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("gopf dev ended with %v:\n%s", err, s.said.String())
	}
}

// Each mistake is reported in one line. The previous operator keeps running, and the next
// edit works.
func TestMistakesAreOneLineAndNeverEndTheLoop(t *testing.T) {
	for _, kind := range servers {
		t.Run(kind, func(t *testing.T) { t.Parallel(); makeMistakes(t, kind) })
	}
}

func makeMistakes(t *testing.T, kind string) {
	t.Helper()
	s := begin(t, kind)
	edit := 0
	live := func() {
		t.Helper()
		edit++
		s.replace("operator.go", fmt.Sprint("const edit = ", edit-1), fmt.Sprint("const edit = ", edit))
		s.eventually(fmt.Sprint("edit ", edit, " is live"), func() bool {
			_, err := s.objects.Namespace("default").Patch(t.Context(), "sample", types.MergePatchType,
				[]byte(`{"spec":{"who":"`+strconv.FormatInt(time.Now().UnixNano(), 36)+`"}}`), metav1.PatchOptions{})
			return err == nil && strings.Contains(s.handled(), fmt.Sprint("\n", edit, " sample"))
		})
	}
	mistakes := []struct{ name, file, good, bad, line string }{
		{"a syntax error", "operator.go", "return op\n", "return op +\n", "operator.go:"},
		{"a type error", "operator.go", "\"note\", note)", "\"note\", missing)", "undefined: missing"},
		{"a panic in declarations", "operator.go", "	op := gopf.New(", "	panic(\"declared\")\n	op := gopf.New(", "panic: declared"},
		{"an invalid declaration", "operator.go", "\"note\", note)", "\"no te\", note)", "no te"},
		{"a panic at startup", "main.go", "func main() {", "func init() {\n	for _, arg := range os.Args[1:] {\n		if arg == \"run\" {\n			panic(\"started\")\n		}\n	}\n}\n\nfunc main() {", "panic: started"},
		{"an operator that ends", "operator.go", "error { return nil }", "error { return gopf.Permanent(fmt.Errorf(\"port in use\")) }", "the operator exited with exit status 1"},
		{"a broken manifest", "sample.yaml", "kind:", "kind: {", "not applied"},
	}
	s.replace("main.go", `import "gopf.dev/gopf/cli"`, "import (\n	\"os\"\n\n	\"gopf.dev/gopf/cli\"\n)\n\nvar _ = os.Args")
	live()
	for _, m := range mistakes {
		t.Logf("with %s", m.name)
		s.replace(m.file, m.good, m.bad)
		s.says(m.line)
		if m.file != "sample.yaml" {
			s.says(m.line, "← the previous build keeps running")
		}
		s.replace(m.file, m.bad, m.good)
		live()
	}
	if strings.Contains(s.said.String(), "goroutine 1 [running]") {
		t.Errorf("a stack trace was printed:\n%s", s.said.String())
	}
	check(t, s.handled())
}

// Saved manifests are applied. Definitions follow the Go types.
func TestManifestsAndDefinitionsFollowTheFiles(t *testing.T) {
	t.Parallel()
	s := begin(t, "--memory")
	s.replace("sample.yaml", "who: ", "who: much-")
	s.says("sample.yaml saved → applied")
	s.eventually("the change is handled", func() bool { return strings.Contains(s.handled(), "much-") })

	s.replace("types.go", "	// Who is", "	// Size is new.\n	// +kubebuilder:validation:Minimum=1\n	Size *int `json:\"size,omitempty\"`\n\n	// Who is")
	s.says("types.go saved → crd.yaml changed")
	s.says("types.go saved → applied", "CustomResourceDefinition")
	if text, err := os.ReadFile(s.folder + "/deploy/crd.yaml"); err != nil || !strings.Contains(string(text), "size:") {
		t.Errorf("deploy/crd.yaml has no size: %v\n%s", err, text)
	}
	_, err := s.objects.Namespace("default").Patch(t.Context(), "sample", types.MergePatchType, []byte(`{"spec":{"size":0}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "spec.size") {
		t.Errorf("the new definition is not applied: %v", err)
	}
}

// A package that the operator begins to import is watched from then on.
func TestNewPackagesAreWatched(t *testing.T) {
	t.Parallel()
	s := begin(t, "--memory")
	if err := os.Mkdir(s.folder+"/extra", 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("extra/extra.go", "package extra\n")
	s.replace("main.go", `import "gopf.dev/gopf/cli"`, "import (\n	\"gopf.dev/gopf/cli\"\n\n	_ \"example.com/loop/extra\"\n)")
	s.says("main.go saved → built", "→ swapped")
	saves, saved := 0, time.Time{}
	s.eventually("a change of the new package is built", func() bool {
		if time.Since(saved) > 10*time.Second { // each save cancels the build before it
			saves, saved = saves+1, time.Now()
			s.write("extra/extra.go", fmt.Sprint("package extra\n\nconst saves = ", saves, "\n"))
		}
		return strings.Contains(s.said.String(), "extra.go saved → built")
	})
}

// The keys reload the operator, run the tests, and end the loop.
func TestKeysReloadTestAndQuit(t *testing.T) {
	t.Parallel()
	s := begin(t, "--memory")
	s.press("r")
	s.says("reload → built", "→ swapped")
	s.write("loop_test.go", "package main\n\nimport \"testing\"\n\nfunc TestFine(t *testing.T) {}\n\nfunc TestBad(t *testing.T) { t.Error(\"no\") }\n")
	s.press("t")
	s.says("tests run after each save")
	s.says("the tests fail: TestBad")
	s.replace("loop_test.go", "{ t.Error(\"no\") }", "{}")
	s.says("the tests pass")
	s.press("?")
	s.says("k kubectl shell")
	s.press("q")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("gopf dev ended with %v:\n%s", err, s.said.String())
	}
}
