package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/serve"
	"gopf.dev/gopf/serve/call"
)

// Options configure a run of tests.
type Options struct {
	// Update writes the golden files that expectations name.
	Update bool
	// Crash runs each test with steps again with a crash of the operator at every write. The
	// end state must be that of the run without a crash.
	Crash bool
	// Out receives a line for each test, and the log of failed ones.
	Out io.Writer
}

// Run runs the tests of a file. The error has the number of failures, or the mistakes in
// the file.
func Run(ctx context.Context, file string, o Options) error {
	dir, base := filepath.Dir(file), filepath.Base(file)
	files := os.DirFS(dir)
	list, problems := load(files, base)
	if err := problems.Err(); err != nil {
		return err
	}
	failed := 0
	for i := range list {
		t := &list[i]
		r := runner{dir: dir, file: base, test: t, options: o, log: &strings.Builder{}}
		found := r.run(ctx)
		if len(found) == 0 {
			fmt.Fprintf(o.Out, "ok    %s%s\n", t.Name, r.remark)
			continue
		}
		failed++
		fmt.Fprintf(o.Out, "FAIL  %s (%s)\n", t.Name, t.Pos)
		for _, line := range found {
			fmt.Fprintf(o.Out, "      %s\n", strings.ReplaceAll(line, "\n", "\n      "))
		}
		if r.log.Len() > 0 {
			fmt.Fprintf(o.Out, "      log:\n%s", r.log)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests failed", failed, len(list))
	}
	return nil
}

// runner runs one test.
type runner struct {
	dir, file string
	test      *Test
	options   Options
	log       *strings.Builder
	remark    string // printed after the name of a test that passed
}

func (r *runner) operator() string {
	if r.test.Operator == "" {
		return "operator.yaml"
	}
	return r.test.Operator
}

// run returns the reasons of a failure. An empty list means success.
func (r *runner) run(ctx context.Context) []string {
	files := os.DirFS(r.dir)
	handlers, err := serve.Open(files, r.operator(), serve.Dir(r.dir))
	if err != nil {
		return []string{err.Error()}
	}
	defer handlers.Close()
	if len(r.test.Steps) > 0 {
		if found := r.live(ctx, handlers.Spec()); len(found) > 0 || !r.options.Crash {
			return found
		}
		return r.crash(ctx, handlers.Spec())
	}
	trial := serve.Trial{Handler: r.test.Handler, Reason: r.test.Reason, Retry: r.test.Retry, User: r.test.User, Log: r.log}
	var errs []error
	read := func(target *map[string]any, o map[string]any, err error) {
		*target = o
		errs = append(errs, err)
	}
	o, err := object(files, r.file, r.test.Object)
	read(&trial.Object, o, err)
	o, err = object(files, r.file, r.test.Was)
	read(&trial.Old, o, err)
	for _, n := range r.test.Children {
		o, err := object(files, r.file, n)
		errs = append(errs, err)
		trial.Children = append(trial.Children, o)
	}
	if err := errors.Join(errs...); err != nil {
		return []string{err.Error()}
	}
	out, err := handlers.Try(ctx, trial)
	return r.compare(actual(out, err))
}

// actual returns the output as a map. An error is the outcome that the operator would
// record: permanent, or retry.
func actual(out call.Output, err error) map[string]any {
	if err == nil {
		return serve.OutputMap(out)
	}
	var decided *call.Error
	if errors.As(err, &decided) && decided.Permanent {
		return map[string]any{"permanent": err.Error()}
	}
	return map[string]any{"retry": map[string]any{"error": err.Error()}}
}

// compare compares the output with the expectation.
func (r *runner) compare(got map[string]any) (found []string) {
	expected, ok := r.test.Expect.Value.(map[string]any)
	if !ok && r.test.Expect.Value != nil {
		return []string{"expect must be a map"}
	}
	for key, v := range got {
		if _, named := expected[key]; !named {
			found = append(found, fmt.Sprintf("the output has %s, which is not expected: %s", key, short(v)))
		}
	}
	for key, want := range expected {
		name, isFile := want.(string)
		if isFile = isFile && strings.HasSuffix(name, ".yaml"); isFile {
			golden, err := r.golden(name, got[key])
			if err != nil {
				found = append(found, err.Error())
				continue
			}
			want = golden
		}
		if v, present := got[key]; present || want == nil {
			found = append(found, matches(want, v, key)...)
		} else {
			found = append(found, fmt.Sprintf("the output has no %s; it is %s", key, short(got)))
		}
	}
	return found
}

// golden returns the content of a golden file. With Update, it writes the file first.
func (r *runner) golden(name string, got any) (any, error) {
	file := filepath.Join(r.dir, filepath.FromSlash(path.Join(path.Dir(r.file), name)))
	if r.options.Update {
		text, err := yaml.Marshal(got)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w; --update writes it", err)
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func equal(a, b any) bool { return diff.Equal(a, b) }

// short returns a value as JSON, cut to a readable length.
func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 300 {
		return strings.ToValidUTF8(string(text[:300]), "") + "…"
	}
	return string(text)
}
