package formats_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const resource = "kopf.dev/v1/kopfexamples"

// Example is the type of the objects.
type Example struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field string `json:"field,omitempty"`
		Other string `json:"other,omitempty"`
		Large string `json:"large,omitempty"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

type change = gopf.Change[*Example]

// example is a new object; more are further fields of its spec.
func example(field string, more ...map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"field": field}
	for _, fields := range more {
		maps.Copy(spec, fields)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": "x", "namespace": "default", "labels": map[string]any{"app": "fixture"}},
		"spec":     spec,
	}}
}

// stage is a cluster with one object "x" and the operator of a situation.
type stage struct {
	t         *testing.T
	situation situation
	cluster   *gopftest.Cluster
	resource  string
	plural    string
	diary     *diary
	restarted bool
	stop      func()
}

func (s situation) stage(t *testing.T) *stage {
	st := &stage{t: t, situation: s, resource: resource, plural: "kopfexamples", diary: &diary{keys: map[string]string{}}}
	switch {
	case s.named != "":
		st.resource, st.plural = s.named, path.Base(s.named)
		st.cluster = gopftest.NewCluster(t, st.resource)
	case s.kind != nil:
		st.cluster = gopftest.NewCluster(t)
		st.cluster.Define(t, *s.kind)
	default:
		st.cluster = gopftest.NewCluster(t, st.resource)
	}
	return st
}

// start runs the operator as a new process.
func (st *stage) start() {
	op := gopf.New()
	st.situation.declare(op, st.diary, st.restarted)
	if st.situation.moved {
		// The older version that hack/downgrade starts has no such field, and moves nothing.
		reflect.ValueOf(&op.Settings.Persistence).Elem().FieldByName("StatusKey").SetString("things")
	}
	st.stop = gopftest.Start(st.t, op, st.cluster)
	st.settle()
}

// settle lets the operator do what is due now.
func (st *stage) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (st *stage) create(obj *unstructured.Unstructured) {
	st.cluster.Create(st.t, obj)
	st.settle()
}

// set changes fields of the spec.
func (st *stage) set(spec map[string]any) {
	st.cluster.Patch(st.t, st.resource, "default", "x", map[string]any{"spec": spec})
	st.settle()
}

func (st *stage) delete() {
	st.cluster.Delete(st.t, st.resource, "default", "x")
	st.settle()
}

func (st *stage) lookup() (*unstructured.Unstructured, bool) {
	return st.cluster.Lookup(st.t, st.resource, "default", "x")
}

func (st *stage) object() *unstructured.Unstructured {
	return st.cluster.Get(st.t, st.resource, "default", "x")
}

// writes are the requests of the operator that change the object.
func (st *stage) writes() []gopftest.Request { return st.cluster.Writes(st.plural) }

// diary notes calls of handlers.
type diary struct {
	mu    sync.Mutex
	lines []string
	keys  map[string]string // of the handlings of handlers that have not finished, by id
	first map[string]string // the key of the first call of each handler
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var lines []string
	return append(lines, d.lines...)
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// unfinished returns the keys of handlings that are not over, by handler.
func (d *diary) unfinished() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.keys)
}

// noteKey remembers the key of a call.
func (d *diary) noteKey(id, key string, finished bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, _, _ = strings.Cut(key, "/") // the rest is the handler's id, which may have another name after a restart
	if d.first == nil {
		d.first = map[string]string{}
	}
	if _, ok := d.first[id]; !ok {
		d.first[id] = key
	}
	d.keys[id] = key
	if finished {
		delete(d.keys, id)
	}
}

// checkKeys checks that handlers that were retried after a restart got the same
// key as before.
func (d *diary) checkKeys(t *testing.T, before map[string]string) {
	t.Helper()
	for id, key := range before {
		if d.first[id] != key {
			t.Errorf("%s: the key after the restart is %q, before it was %q", id, d.first[id], key)
		}
	}
}

// done is a handler that succeeds.
func (d *diary) done(id string) gopf.ChangeFunc[*Example] { return d.late(id, 0) }

// late is a handler that asks for a retry after the delay so many times, and then
// succeeds.
func (d *diary) late(id string, times int) gopf.ChangeFunc[*Example] {
	return d.retried(id, times, delay)
}

func (d *diary) retried(id string, times int, after time.Duration) gopf.ChangeFunc[*Example] {
	return func(_ context.Context, ch *change) error {
		d.add("%s %s %s->%s #%d", id, ch.Reason, ch.Old.Spec.Field, ch.Object.Spec.Field, ch.Retry)
		d.noteKey(id, ch.Key(), ch.Retry >= times)
		if ch.Retry < times {
			return gopf.RetryAfter(after, errors.New("not yet, «später» <&>"))
		}
		return nil
	}
}
