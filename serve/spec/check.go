package spec

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gopf.dev/gopf/kind"
)

// Load reads the file and returns the operator with all mistakes that are visible without
// running anything. files has the templates and definitions that the file names; their
// names are relative to the folder of the file.
func Load(files fs.FS, file string) (*Operator, Problems) {
	var problems Problems
	op := &Operator{}
	text, err := fs.ReadFile(files, file)
	if err != nil {
		problems.Add(Pos{file, 1}, "%v", err)
		return op, problems
	}
	Decode(file, text, op, &problems)
	more := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if more.Decode(&first) == nil && more.Decode(&second) == nil && len(second.Content) > 0 {
		problems.Add(Pos{file, second.Content[0].Line}, "the file has a second document; only one operator may be in a file")
	}
	c := checker{files: files, dir: path.Dir(file), problems: &problems}
	if op.Line > 0 {
		c.operator(op)
	}
	problems.sort()
	return op, problems
}

type checker struct {
	files    fs.FS
	dir      string
	problems *Problems
}

var (
	nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	idForm   = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)
	varForm  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (c checker) operator(op *Operator) {
	if op.APIVersion != APIVersion && !op.rejected("apiVersion") {
		c.problems.Add(op.Pos, "apiVersion is %q, not %q", op.APIVersion, APIVersion)
	}
	if op.Kind != Kind && !op.rejected("kind") {
		c.problems.Add(op.Pos, "kind is %q, not %q", op.Kind, Kind)
	}
	switch {
	case op.rejected("metadata"), op.Metadata.rejected("name"):
	case op.Metadata.Name == "":
		c.problems.Add(op.Pos, "metadata.name is missing: it names the operator")
	case !nameForm.MatchString(op.Metadata.Name):
		c.problems.Add(op.Metadata.Pos, "metadata.name %q must consist of lower-case letters, digits, '-' and '.'", op.Metadata.Name)
	}
	if len(op.Resources) == 0 && !op.rejected("resources") {
		c.problems.Add(op.Pos, "resources are missing: the operator has nothing to serve")
	}
	if w := op.Webhook; w != nil {
		c.webhook(w)
	}
	for i := range op.Resources {
		c.resource(&op.Resources[i])
	}
	c.repeated(op.Resources)
	for _, list := range [][]Activity{op.Startup, op.Cleanup, op.Probes} {
		ids := map[string]bool{}
		for i := range list {
			a := &list[i]
			c.id(a.Pos, &a.keys, a.ID, ids)
			c.call(a.Pos, &a.keys, a.ID, &a.Call)
			c.limits(a.Pos, &a.keys, a.ID, a.Retries, a.OnError)
			c.durations(a.Pos, &a.keys, a.ID, map[string]time.Duration{"timeout": a.Timeout, "callTimeout": a.CallTimeout, "backoff": orZero(a.Backoff)})
		}
	}
}

func (c checker) webhook(w *Webhook) {
	if w.Service == "" && !w.rejected("service") {
		c.problems.Add(w.Pos, "webhook.service is missing: it names the Service")
	}
	for _, port := range []struct {
		key string
		is  int
	}{{"port", w.Port}, {"listen", w.Listen}} {
		if port.is < 0 || port.is > 65535 {
			c.problems.Add(w.KeyPos(w.Pos, port.key), "webhook.%s is %d; use a port from 1 to 65535", port.key, port.is)
		}
	}
}

// repeated finds resources that are declared twice with the same filter. With different
// filters, that is meant.
func (c checker) repeated(resources []Resource) {
	for i := range resources {
		r := &resources[i]
		first := slices.IndexFunc(resources[:i], func(other Resource) bool {
			return other.Resource == r.Resource && other.Where.equal(r.Where)
		})
		if first >= 0 && r.Resource != "" {
			c.problems.Warn(r.KeyPos(r.Pos, "resource"), "resource %s is declared twice, first in line %d; put all its handlers there, or give both a different filter", r.Resource, resources[first].Line)
		}
	}
}

func (c checker) resource(r *Resource) {
	of, err := kind.Parse(r.Resource)
	switch {
	case r.rejected("resource"):
	case r.Resource == "":
		c.problems.Add(r.Pos, "resource is missing, such as example.com/v1/databases")
	case err != nil:
		c.problems.Add(r.Pos, "resource: %v", err)
	case !of.Specific():
		c.problems.Add(r.Pos, "resource %q does not name one resource; use GROUP/VERSION/PLURAL", r.Resource)
	}
	if r.Definition != "" {
		c.file(r.KeyPos(r.Pos, "definition"), "definition", r.Definition)
	}
	c.where(r.Where)
	if len(r.Handlers) == 0 && !r.rejected("handlers") {
		c.problems.Add(r.Pos, "resource %s has no handlers", r.Resource)
	}
	ids := map[string]bool{}
	for i := range r.Handlers {
		h := &r.Handlers[i]
		c.id(h.Pos, &h.keys, h.ID, ids)
		c.handler(h)
	}
}

func (c checker) id(at Pos, k *keys, id string, seen map[string]bool) {
	switch {
	case k.rejected("id"):
	case id == "":
		c.problems.Add(at, "id is missing")
	case !idForm.MatchString(id):
		c.problems.Add(at, "id %q must consist of letters, digits, '-', '_' and '.'", id)
	case seen[id]:
		c.problems.Add(at, "id %q is used twice", id)
	}
	seen[id] = true
}

func (c checker) file(at Pos, what, name string) {
	if path.IsAbs(name) {
		c.problems.Add(at, "%s %q must be relative to the file of the operator", what, name)
	} else if info, err := fs.Stat(c.files, path.Join(c.dir, name)); err != nil || info.IsDir() {
		c.problems.Add(at, "%s: there is no file %q", what, name)
	}
}

// reasons are the words of "on".
var reasons = []string{"create", "update", "delete", "resume", "event"}

func (c checker) handler(h *Handler) {
	c.where(h.Where)
	family := h.Family()
	switch {
	case h.given("timer") && !h.rejected("timer") && h.Timer <= 0:
		c.problems.Add(h.KeyPos(h.Pos, "timer"), "handler %q: timer is %s; use an interval of more than 0, such as 1h", h.ID, h.Timer)
		family = None
	case h.rejected("on", "field", "timer", "daemon", "validate", "mutate", "reconcile"): // reported before
		family = None
	case family == None:
		c.problems.Add(h.Pos, "handler %q must have exactly one of on, timer, daemon, validate, mutate and reconcile", h.ID)
	}
	for _, reason := range h.On {
		switch {
		case !slices.Contains(reasons, reason):
			c.problems.Add(h.KeyPos(h.Pos, "on"), "handler %q: on has %q; known are %s", h.ID, reason, strings.Join(reasons, ", "))
		case reason == "event" && len(h.On) > 1:
			c.problems.Add(h.KeyPos(h.Pos, "on"), "handler %q: event cannot be combined with other reasons", h.ID)
		}
	}
	for _, rule := range []struct {
		used    bool
		key     string
		allowed []Family
	}{
		{h.Field != "", "field", []Family{Change, Timer, Daemon}},
		{h.Idle != 0, "idle", []Family{Timer}},
		{h.Sharp, "sharp", []Family{Timer}},
		{h.InitialDelay != 0, "initialDelay", []Family{Timer, Daemon}},
		{len(h.Operations) > 0, "operations", []Family{Validate, Mutate}},
		{h.IgnoreFailures, "ignoreFailures", []Family{Validate, Mutate}},
		{len(h.Children) > 0, "children", []Family{Reconciling}},
		{len(h.Status) > 0, "status", []Family{Reconciling}},
		{h.Retries != nil, "retries", []Family{Change, Timer, Daemon, Reconciling}},
		{h.Backoff != nil, "backoff", []Family{Change, Timer, Daemon, Reconciling}},
		{h.Timeout != 0, "timeout", []Family{Change, Timer, Daemon, Reconciling}},
		{h.OnError != "", "onError", []Family{Change, Timer, Daemon, Reconciling}},
		{h.Optional, "optional", []Family{Change, Timer, Daemon}},
		{h.Message != "", "message", []Family{Validate}},
	} {
		if rule.used && family != None && !slices.Contains(rule.allowed, family) {
			c.problems.Add(h.KeyPos(h.Pos, rule.key), "handler %q: %s does not apply to this type of handler", h.ID, rule.key)
		}
	}
	c.durations(h.Pos, &h.keys, h.ID, map[string]time.Duration{
		"idle": h.Idle, "initialDelay": h.InitialDelay, "timeout": h.Timeout, "callTimeout": h.CallTimeout, "backoff": orZero(h.Backoff),
	})
	if h.Field != "" {
		c.path(h.KeyPos(h.Pos, "field"), fmt.Sprintf("handler %q: field", h.ID), h.Field)
	}
	for _, op := range h.Operations {
		if !slices.Contains([]string{"CREATE", "UPDATE", "DELETE"}, op) {
			c.problems.Add(h.KeyPos(h.Pos, "operations"), "handler %q: operations has %q; known are CREATE, UPDATE and DELETE", h.ID, op)
		}
	}
	if family == Daemon && h.Way() != Exec && h.Way() != NoWay {
		c.problems.Add(h.Pos, "handler %q: a daemon needs exec without keep", h.ID)
	}
	c.limits(h.Pos, &h.keys, h.ID, h.Retries, h.OnError)
	if h.rejected("children") {
		return
	}
	if len(h.Children) > 0 {
		if h.Way() != NoWay || len(h.Exec) > 0 || h.HTTP != nil {
			c.problems.Add(h.Pos, "handler %q has children and a call; use one of them", h.ID)
		}
		c.children(h)
	} else {
		c.call(h.Pos, &h.keys, h.ID, &h.Call)
		if h.Message != "" && h.CEL == "" && !h.rejected("cel") {
			c.problems.Add(h.Pos, "handler %q: message belongs to cel", h.ID)
		}
	}
	if family == Reconciling {
		c.owns(h)
	}
}

func (c checker) limits(at Pos, k *keys, id string, retries *int, onError string) {
	if retries != nil && *retries < 0 {
		c.problems.Add(k.KeyPos(at, "retries"), "handler %q: retries is negative: %d; leave it out for no limit", id, *retries)
	}
	if !slices.Contains([]string{"", "temporary", "permanent", "ignored"}, onError) {
		c.problems.Add(k.KeyPos(at, "onError"), "handler %q: onError is %q; known are temporary, permanent and ignored", id, onError)
	}
}

// durations finds negative durations.
func (c checker) durations(at Pos, k *keys, id string, of map[string]time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if of[key] < 0 {
			c.problems.Add(k.KeyPos(at, key), "handler %q: %s is negative: %s; use a longer duration, or leave it out for the default", id, key, of[key])
		}
	}
}

func orZero(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

func (c checker) owns(h *Handler) {
	if every := h.Reconcile.Every; every < 0 {
		c.problems.Add(h.Reconcile.KeyPos(h.Reconcile.Pos, "every"), "handler %q: reconcile.every is negative: %s; use a longer interval, or leave it out", h.ID, every)
	}
	if len(h.Reconcile.Owns) == 0 && !h.Reconcile.rejected("owns") {
		c.problems.Add(h.Reconcile.Pos, "handler %q: reconcile.owns is missing: it names the resources of the children", h.ID)
	}
	for _, name := range h.Reconcile.Owns {
		if of, err := kind.Parse(name); err != nil {
			c.problems.Add(h.Reconcile.Pos, "handler %q: reconcile.owns: %v", h.ID, err)
		} else if !of.Specific() {
			c.problems.Add(h.Reconcile.Pos, "handler %q: reconcile.owns: %q does not name one resource; use GROUP/VERSION/PLURAL", h.ID, name)
		}
	}
}

func (c checker) children(h *Handler) {
	ids := map[string]bool{}
	for i := range h.Children {
		child := &h.Children[i]
		if child.ID != "" && !varForm.MatchString(child.ID) {
			c.problems.Add(child.Pos, "the id %q of a child must consist of letters, digits and '_': it is a name in expressions", child.ID)
		}
		for _, on := range child.DependsOn {
			if !ids[on] {
				c.problems.Add(child.Pos, "child %q depends on %q, which is not declared before it", child.ID, on)
			}
		}
		c.id(child.Pos, &child.keys, child.ID, ids)
		c.template(child.Pos, child.ID, child.Template)
	}
}

func (c checker) template(at Pos, id string, t Node) {
	switch v := t.Value.(type) {
	case string:
		c.file(at, "template", v)
	case map[string]any:
	default:
		c.problems.Add(at, "template of %q must be a map, or the name of a file", id)
	}
}

func (c checker) call(at Pos, k *keys, id string, call *Call) {
	switch call.Way() {
	case NoWay:
		if k.rejected("exec", "http", "cel", "template") { // reported before
			break
		}
		c.problems.Add(at, "handler %q must have exactly one of exec, http, cel and template", id)
	case Exec, Kept:
		c.exec(at, id, call)
	case Hook:
		c.http(id, call)
	case Template:
		c.template(at, id, call.Template)
	}
	if w := call.Way(); w != Exec && w != Kept && w != NoWay {
		for key, used := range map[string]bool{"keep": call.Keep, "processes": call.Processes != 0, "env": len(call.Env) > 0, "cluster": call.Cluster} {
			if used {
				c.problems.Add(k.KeyPos(at, key), "handler %q: %s belongs to exec", id, key)
			}
		}
	}
	for key, n := range map[string]int64{"processes": int64(call.Processes), "maxOutput": call.MaxOutput} {
		if n < 0 {
			c.problems.Add(k.KeyPos(at, key), "handler %q: %s is negative: %d; use a larger number, or leave it out for the default", id, key, n)
		}
	}
}

func (c checker) exec(at Pos, id string, call *Call) {
	if program := call.Exec[0]; strings.Contains(program, "/") && !path.IsAbs(program) {
		name := path.Join(c.dir, program)
		info, err := fs.Stat(c.files, name)
		switch {
		case err != nil || info.IsDir():
			c.problems.Add(at, "handler %q: there is no executable %q", id, program)
		case info.Mode().Perm()&0o111 == 0:
			c.problems.Add(at, "handler %q: %q is not executable; run chmod +x %s", id, program, program)
		}
	} else if program == "" {
		c.problems.Add(at, "handler %q: exec names no program", id)
	}
	for _, v := range call.Env {
		if name, _, _ := strings.Cut(v, "="); !varForm.MatchString(name) {
			c.problems.Add(at, "handler %q: env has %q; use NAME or NAME=VALUE", id, v)
		} else if strings.HasPrefix(name, "GOPF_") {
			c.problems.Add(at, "handler %q: env has %q; names with GOPF_ are reserved", id, v)
		}
	}
}

func (c checker) http(id string, call *Call) {
	h := call.HTTP
	if u, err := url.Parse(h.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		c.problems.Add(h.Pos, "handler %q: %q is not an http or https URL", id, h.URL)
	}
	if (h.CertFile == "") != (h.KeyFile == "") {
		c.problems.Add(h.Pos, "handler %q: certFile and keyFile belong together", id)
	}
	if h.TokenFile != "" && h.TokenSecret != nil {
		c.problems.Add(h.Pos, "handler %q: use one of tokenFile and tokenSecret", id)
	}
	if s := h.TokenSecret; s != nil && (s.Name == "" || s.Namespace == "") {
		c.problems.Add(h.Pos, "handler %q: tokenSecret needs a namespace and a name", id)
	}
}
