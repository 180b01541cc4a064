package schema

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// Source reads documents from the API server.
type Source interface {
	// Document sends a GET request and passes the response body to read. It returns an
	// error of read as it is.
	Document(ctx context.Context, path string, read func(io.Reader) error) error
}

// Path is the path of a field that handlers of a resource use.
type Path struct {
	Keys     jsonvalue.Path
	Handlers []string // their ids
	Doubt    string   // why the path may be wrong, as a sentence; "" means no doubt
}

// Checker compares the paths of handlers with the schemas that the API server
// publishes, and logs a warning for each path that does not exist. It checks each
// resource once. An API server that publishes no schemas, or refuses to show them, is no
// problem: only the doubts about the Go types are logged then.
type Checker struct {
	API Source
	Log *slog.Logger

	mu   sync.Mutex
	seen map[schema.GroupVersionResource]bool
	todo []task
	wake chan struct{}
}

type task struct {
	info  kind.Info
	paths []Path
}

// NewChecker returns a checker. Nothing is requested before [Checker.Run].
func NewChecker(api Source, log *slog.Logger) *Checker {
	return &Checker{API: api, Log: log, seen: map[schema.GroupVersionResource]bool{}, wake: make(chan struct{}, 1)}
}

// Check adds a resource to those to be checked, unless it was added before. It does not
// block.
func (c *Checker) Check(info kind.Info, paths []Path) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[info.GVR()] || len(paths) == 0 {
		return
	}
	c.seen[info.GVR()] = true
	c.todo = append(c.todo, task{info, paths})
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run checks the added resources until the context is done.
func (c *Checker) Run(ctx context.Context) {
	var waiting sync.WaitGroup // for schemas that are not published yet
	defer waiting.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.mu.Lock()
		todo := c.todo
		c.todo = nil
		c.mu.Unlock()
		for gv, tasks := range byVersion(todo) {
			if !c.checkVersion(ctx, gv, tasks, false) {
				waiting.Go(func() { c.checkLater(ctx, gv, tasks) })
			}
		}
	}
}

// checkLater repeats a check that could not be completed.
func (c *Checker) checkLater(ctx context.Context, gv schema.GroupVersion, tasks []task) {
	for i, delay := range delays() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		if c.checkVersion(ctx, gv, tasks, i == len(delays())-1) {
			return
		}
	}
}

// delays returns the delays before further attempts. The API server needs about a second
// to publish the schema of a new custom resource definition.
func delays() []time.Duration { return []time.Duration{10 * time.Second, time.Minute} }

func byVersion(tasks []task) map[schema.GroupVersion][]task {
	by := map[schema.GroupVersion][]task{}
	for _, t := range tasks {
		gv := t.info.GVR().GroupVersion()
		by[gv] = append(by[gv], t)
	}
	return by
}

// checkVersion checks resources of one version of a group, which share a document. It
// returns false and logs nothing if the schemas cannot be read now and this is not the
// last attempt.
func (c *Checker) checkVersion(ctx context.Context, gv schema.GroupVersion, tasks []task, last bool) bool {
	var d document
	if slices.ContainsFunc(tasks, func(t task) bool { return slices.ContainsFunc(t.paths, inSchema) }) {
		var err error
		d, err = c.fetch(ctx, gv, tasks)
		if ctx.Err() != nil {
			return true
		}
		complete := !slices.ContainsFunc(tasks, func(t task) bool { _, found := d.of(t.info); return !found })
		_, large := errors.AsType[*tooLargeError](err)
		if hopeless := large || apierrors.IsNotFound(err) || apierrors.IsForbidden(err); !complete && !hopeless && !last {
			return false
		}
		if !complete {
			c.Log.Debug("Some paths of handlers are not checked: the API server has no schema for them.", "group", gv.String(), "error", err)
		}
	}
	for _, t := range tasks {
		raw, found := d.of(t.info)
		for _, p := range t.paths {
			f := Finding{Verdict: Unknown}
			if found && inSchema(p) {
				f = d.find(raw, p.Keys)
			}
			if line := p.warning(t.info, f); line != "" {
				c.Log.Warn(line, "handlers", p.Handlers)
			}
		}
	}
	return true
}

// inSchema reports whether the path needs the schema of the resource. Metadata is the
// same in all resources, and was checked at the declaration.
func inSchema(p Path) bool { return p.Keys[0] != "metadata" }

// fetch reads the document of one version of a group, as far as the tasks need it. It is
// empty if the API server publishes none.
func (c *Checker) fetch(ctx context.Context, gv schema.GroupVersion, tasks []task) (d document, err error) {
	var wanted []kind.Info
	for _, t := range tasks {
		wanted = append(wanted, t.info)
	}
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	var published bool
	err = c.API.Document(ctx, "/openapi/v3", func(r io.Reader) (err error) {
		published, err = readIndex(r, name)
		return err
	})
	if err != nil || !published {
		return nil, err
	}
	err = c.API.Document(ctx, "/openapi/v3/"+name, func(r io.Reader) (err error) {
		d, err = readDocument(r, wanted, usual())
		return err
	})
	return d, err
}

// Has reports for each path whether objects of the resource can have a value there. It
// reads the schema from the API server. A resource without a schema can have any value.
func (c *Checker) Has(ctx context.Context, info kind.Info, paths ...[]string) ([]bool, error) {
	d, err := c.fetch(ctx, schema.GroupVersion{Group: info.Group, Version: info.Version}, []task{{info: info}})
	if err != nil {
		return nil, err
	}
	raw, found := d.of(info)
	has := make([]bool, len(paths))
	for i, path := range paths {
		has[i] = !found || d.find(raw, path).Verdict != Missing
	}
	return has, nil
}

// warning returns the log line about a path. An empty one means that there is nothing to
// report.
func (p Path) warning(info kind.Info, f Finding) string {
	switch {
	case f.Verdict == Unknown && p.Doubt != "":
		return "Doubtful declaration: " + p.Doubt
	case f.Verdict != Missing:
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The field %s of %s does not exist in the schema of the cluster", Text(p.Keys), info)
	if meant, ok := f.Meant(p.Keys); ok {
		fmt.Fprintf(&b, "; did you mean %s?", Text(meant))
	} else if f.Parent != "" {
		fmt.Fprintf(&b, ": %s is a %s.", Text(p.Keys[:f.At]), f.Parent)
	} else {
		b.WriteString(".")
	}
	return b.String()
}
