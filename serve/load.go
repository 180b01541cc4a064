// Package serve declares handlers from a YAML file: programs, HTTP hooks, CEL expressions
// and templates instead of Go functions. The command "gopf serve" runs such a file. An
// operator written in Go can have handlers of both kinds:
//
//	op := gopf.New(gopf.Identity("databases.example.com"))
//	gopf.For[*Database](op, "example.com/v1/databases").OnCreate("create", create)
//	if err := serve.Load(op, os.DirFS("handlers"), "operator.yaml", serve.Dir("handlers")); err != nil {
//		…
//	}
//
// The manual is docs/serve.md.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"gopf.dev/gopf"
	"gopf.dev/gopf/serve/call"
	"gopf.dev/gopf/serve/expr"
	"gopf.dev/gopf/serve/spec"
)

// Option is an option of [Load] and [New].
type Option func(*options)

type options struct{ dir string }

// Dir sets the folder of the file: relative paths of programs, tokens and certificates
// begin there, and programs run in it. Default: the current folder.
func Dir(path string) Option { return func(o *options) { o.dir = path } }

// Load declares the handlers of the file, and applies its settings. files contains the file,
// the templates and the definitions. The error is a [spec.Problems]: all mistakes with their
// lines. After an error, the operator must not run.
func Load(op *gopf.Operator, files fs.FS, file string, opts ...Option) error {
	parsed, problems := spec.Load(files, file)
	return declare(op, parsed, problems, files, file, opts)
}

// New returns an operator with the name and the handlers of the file; see [Load].
func New(files fs.FS, file string, opts ...Option) (*gopf.Operator, error) {
	parsed, problems := spec.Load(files, file)
	if parsed.Metadata.Name == "" {
		return nil, problems.Err()
	}
	op := gopf.New(gopf.Identity(parsed.Identity()))
	return op, declare(op, parsed, problems, files, file, opts)
}

func declare(op *gopf.Operator, parsed *spec.Operator, problems spec.Problems, files fs.FS, file string, opts []Option) error {
	set, problems := build(parsed, problems, files, file, opts)
	if set == nil {
		return problems.Err()
	}
	decodeSettings(parsed.Settings, &op.Settings, &problems)
	if err := problems.Err(); err != nil {
		return err
	}
	set.declare(op)
	return op.Err()
}

// Check returns all mistakes of the file, and of the programs and expressions in it. See
// [Inspect] for warnings.
func Check(files fs.FS, file string, opts ...Option) error {
	return Inspect(files, file, opts...).Err()
}

// Inspect returns all mistakes that [Check] finds, and warnings: text that is probably not
// meant, but with which the operator runs.
func Inspect(files fs.FS, file string, opts ...Option) spec.Problems {
	parsed, problems := spec.Load(files, file)
	set, problems := build(parsed, problems, files, file, opts)
	if set != nil {
		set.close()
	}
	op := gopf.New()
	decodeSettings(parsed.Settings, &op.Settings, &problems)
	checkPrograms(parsed, &problems)
	checkTypes(parsed, files, path.Dir(file), &problems)
	return problems.Sorted()
}

// set has the compiled handlers of a file.
type set struct {
	spec     *spec.Operator
	files    fs.FS
	folder   string // of the file in files
	dir      string // of the file on disk
	env      *expr.Env
	share    *share
	problems *spec.Problems

	resources  []*resource
	activities map[string][]*activity // by "startup", "cleanup" and "probe"

	mu      sync.Mutex
	callers []call.Caller // to be closed
}

// resource is a resource with its compiled handlers.
type resource struct {
	spec     *spec.Resource
	when     *expr.Expr // nil means all objects
	handlers []*handler
}

// handler is a compiled handler.
type handler struct {
	spec     *spec.Handler
	when     *expr.Expr // nil means all objects
	caller   call.Caller
	cel      *expr.Expr     // of a validating handler
	message  *expr.Template // why cel denies. nil means a standard text.
	children []*child
	status   *expr.Template // nil means none
}

// activity is a compiled handler of the operator itself.
type activity struct {
	spec   *spec.Activity
	caller call.Caller
}

// variables of expressions. children is for handlers with children only.
var variables = []string{"object", "old", "diff", "reason", "event", "field", "retry", "review", "memo", "key"}

// build compiles everything, and adds to the problems. The set is nil after a mistake.
func build(parsed *spec.Operator, problems spec.Problems, files fs.FS, file string, opts []Option) (*set, spec.Problems) {
	o := options{dir: "."}
	for _, opt := range opts {
		opt(&o)
	}
	dir, err := filepath.Abs(filepath.Join(o.dir, filepath.FromSlash(path.Dir(file))))
	if err != nil {
		problems.Add(spec.Pos{File: file, Line: 1}, "%v", err)
		return nil, problems
	}
	env, err := expr.NewEnv(variables)
	if err != nil {
		problems.Add(spec.Pos{File: file, Line: 1}, "%v", err)
		return nil, problems
	}
	s := &set{spec: parsed, files: files, folder: path.Dir(file), dir: dir, env: env, share: newShare(), problems: &problems, activities: map[string][]*activity{}}
	for i := range parsed.Resources {
		s.resources = append(s.resources, s.resource(&parsed.Resources[i]))
	}
	for name, list := range map[string][]spec.Activity{"startup": parsed.Startup, "cleanup": parsed.Cleanup, "probe": parsed.Probes} {
		for i := range list {
			a := &list[i]
			s.activities[name] = append(s.activities[name], &activity{a, s.caller(a.Pos, a.ID, &a.Call, env, false)})
		}
	}
	if problems.Err() != nil {
		s.close()
		return nil, problems.Sorted()
	}
	return s, problems
}

func (s *set) problem(at spec.Pos, format string, args ...any) { s.problems.Add(at, format, args...) }

func (s *set) resource(r *spec.Resource) *resource {
	out := &resource{spec: r, when: s.condition(r.Where)}
	for i := range r.Handlers {
		out.handlers = append(out.handlers, s.handler(&r.Handlers[i]))
	}
	return out
}

func (s *set) condition(w spec.Where) *expr.Expr {
	if w.CEL == "" {
		return nil
	}
	x, err := s.env.Condition(w.CEL)
	if err != nil {
		s.problem(w.KeyPos(w.Pos, "cel"), "where.cel: %v", err)
		return nil
	}
	s.constant(w.KeyPos(w.Pos, "cel"), "where.cel", x)
	return x
}

// constant warns about a condition that is the same for all objects.
func (s *set) constant(at spec.Pos, what string, x *expr.Expr) {
	if value, ok := x.Constant(); ok {
		s.problems.Warn(at, "%s is %v for all objects; use a variable such as object in it, or remove it", what, value)
	}
}

func (s *set) handler(h *spec.Handler) *handler {
	out := &handler{spec: h, when: s.condition(h.Where)}
	if len(h.Children) > 0 {
		s.templates(out)
		return out
	}
	if h.Validate && h.CEL != "" {
		var err error
		if out.cel, err = s.env.Condition(h.CEL); err != nil {
			s.problem(h.Pos, "handler %q: %v", h.ID, err)
		} else {
			s.constant(h.KeyPos(h.Pos, "cel"), fmt.Sprintf("handler %q: cel", h.ID), out.cel)
		}
		if h.Message != "" {
			if out.message, err = s.env.Text(h.Message); err != nil {
				s.problem(h.Pos, "handler %q: message: %v", h.ID, err)
			}
		}
		return out
	}
	out.caller = s.caller(h.Pos, h.ID, &h.Call, s.env, h.Daemon)
	return out
}

// caller returns the caller of a handler. It is nil after a problem.
func (s *set) caller(at spec.Pos, id string, c *spec.Call, env *expr.Env, daemon bool) call.Caller {
	o := call.Options{Call: *c, Dir: s.dir, Inputs: s.share.inputs}
	var caller call.Caller
	switch c.Way() {
	case spec.Exec:
		if daemon {
			caller = call.NewDaemon(o)
		} else {
			caller = call.NewExec(o)
		}
	case spec.Kept:
		caller = call.NewKept(o)
	case spec.Hook:
		h, err := call.NewHTTP(o)
		if err != nil {
			s.problem(at, "handler %q: %v", id, err)
			return nil
		}
		caller = h
	case spec.CEL:
		x, err := env.Compile(c.CEL)
		if err != nil {
			s.problem(at, "handler %q: %v", id, err)
			return nil
		}
		return evaluator{s.share, x.Eval}
	case spec.Template:
		value, ok := s.value(at, id, c.Template)
		if !ok {
			return nil
		}
		t, err := env.Template(value)
		if err != nil {
			s.problem(c.Template.Pos, "template of handler %q: %v", id, err)
			return nil
		}
		return evaluator{s.share, t.Render}
	default:
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers = append(s.callers, caller)
	return caller
}

// value returns the value of a template: the map itself, or the content of its file.
func (s *set) value(at spec.Pos, id string, t spec.Node) (any, bool) {
	name, isFile := t.Value.(string)
	if !isFile {
		return t.Value, t.Value != nil
	}
	file := path.Join(s.folder, name)
	text, err := fs.ReadFile(s.files, file)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) { // that was reported before
			s.problem(at, "template of %q: %v", id, err)
		}
		return nil, false
	}
	var value spec.Node
	before := len(*s.problems)
	spec.Decode(file, text, &value, s.problems)
	if _, isMap := value.Value.(map[string]any); !isMap && len(*s.problems) == before {
		s.problem(spec.Pos{File: file, Line: 1}, "the template must be a map")
	}
	return value.Value, len(*s.problems) == before
}

// close ends all kept programs.
func (s *set) close() {
	s.mu.Lock()
	callers := s.callers
	s.callers = nil
	s.mu.Unlock()
	for _, c := range callers {
		c.Close()
	}
}

// checkPrograms checks that programs without a path are installed.
func checkPrograms(op *spec.Operator, problems *spec.Problems) {
	check := func(at spec.Pos, id string, c *spec.Call) {
		if len(c.Exec) == 0 || c.Exec[0] == "" || strings.Contains(c.Exec[0], "/") {
			return
		}
		if _, err := exec.LookPath(c.Exec[0]); err != nil {
			problems.Add(at, "handler %q: there is no program %q in PATH", id, c.Exec[0])
		}
	}
	for i := range op.Resources {
		for j := range op.Resources[i].Handlers {
			h := &op.Resources[i].Handlers[j]
			check(h.Pos, h.ID, &h.Call)
		}
	}
	for _, list := range [][]spec.Activity{op.Startup, op.Cleanup, op.Probes} {
		for i := range list {
			check(list[i].Pos, list[i].ID, &list[i].Call)
		}
	}
}

// evaluator is a caller of an expression or a template: its value is the output.
type evaluator struct {
	share *share
	eval  func(context.Context, map[string]any) (any, error)
}

func (evaluator) Close() {}

// Call evaluates the expression. A failed evaluation is a temporary error, because the object
// may have changed at the next call.
func (e evaluator) Call(ctx context.Context, r *call.Request) (out call.Output, err error) {
	err = e.share.evaluate(ctx, r.Input.Review, r.Namespace, func() error {
		v, err := e.eval(ctx, inputVars(&r.Input))
		if err != nil {
			return err
		}
		if out, err = outputOf(v); err != nil {
			return fmt.Errorf("the value: %w", err)
		}
		return nil
	})
	return out, err
}
