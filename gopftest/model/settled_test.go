package model_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// settled checks the invariants of all objects at rest.
func (o *oracle) settled(w *world) {
	objects := map[string]*unstructured.Unstructured{}
	for _, obj := range w.cluster.List(w.t, resource, "") {
		objects[string(obj.GetUID())] = obj
		if obj.GetDeletionTimestamp() != nil {
			if slices.Contains(obj.GetFinalizers(), hold) && len(obj.GetFinalizers()) == 1 {
				continue // users hold it
			}
			o.wrong("%s is still not deleted, with the finalizers %q", obj.GetName(), obj.GetFinalizers())
			continue
		}
		o.everyHandlerSawTheLastState(obj)
		o.everythingIsWritten(obj)
		o.nothingIsLeftOver(w, obj)
	}
	for uid := range o.states {
		if objects[uid] == nil {
			o.deletionsAreHandled(uid)
		}
	}
	o.indexIsComplete(w, objects)
	o.daemonsRun(w, objects)
	o.eventsAreComplete(w, objects)
	o.leadersAreCounted(w)
}

// everyHandlerSawTheLastState checks the last finished call of each handler.
func (o *oracle) everyHandlerSawTheLastState(obj *unstructured.Unstructured) {
	uid, now := string(obj.GetUID()), userState(obj.Object)
	for id, h := range o.declaration.all() {
		if !h.filter.matches(obj.Object) || h.on&(gopf.Create|gopf.Update) == 0 {
			continue
		}
		last := o.lastFinal(uid, id)
		if former := h.former(id); last == nil && former != "" {
			last = o.lastFinal(uid, former)
		}
		switch {
		case last == nil && h.added:
		case last == nil && h.sub:
		case last == nil && h.on == gopf.Update: // all is as it was created
		case last == nil && h.on == gopf.Create && !o.alwaysMatched(uid, h.filter):
		case last == nil && h.kind == "field" && asMap(obj.Object["spec"])[h.field] == nil:
		case last == nil:
			o.wrong("%s has never finished for %s", id, obj.GetName())
		case h.on == gopf.Create:
		case h.kind == "field" && sameField(last.object, obj.Object, h.field):
		case h.kind == "field" || last.state != now:
			o.wrong("%s has last seen %s as %s, but it is %s", id, obj.GetName(), last.state, now)
		}
	}
}

// former returns the stored id of a handler before it was renamed.
func (h handler) former(id string) string {
	if h.formerly == "" {
		return ""
	}
	return h.formerly + strings.TrimPrefix(id, h.id)
}

// declared is a handler, or a sub-handler, with what it inherits.
type declared struct {
	handler
	sub bool
}

// all returns the change handlers by their stored ids, including sub-handlers.
func (d declaration) all() map[string]declared {
	found := map[string]declared{}
	var add func(h handler, parent string)
	add = func(h handler, parent string) {
		id := h.storedID(parent)
		found[id] = declared{h, parent != ""}
		for _, s := range h.subs {
			s.on, s.filter, s.kind, s.field = h.on, h.filter, h.kind, h.field
			add(s, id)
		}
	}
	for _, h := range d.handlers {
		if h.kind == "change" || h.kind == "field" {
			add(h, "")
		}
	}
	return found
}

func sameField(a, b map[string]any, field string) bool {
	x, _ := json.Marshal(asMap(a["spec"])[field])
	y, _ := json.Marshal(asMap(b["spec"])[field])
	return string(x) == string(y)
}

func (o *oracle) lastFinal(uid, id string) *call {
	for _, k := range slices.Backward(o.calls[uid]) {
		if k.id == id && k.final {
			return k
		}
	}
	return nil
}

func (o *oracle) alwaysMatched(uid string, f filter) bool {
	return !slices.ContainsFunc(o.states[uid], func(s state) bool { return !f.matches(s.object) })
}

// everythingIsWritten checks patches and results of the last calls.
func (o *oracle) everythingIsWritten(obj *unstructured.Unstructured) {
	uid := string(obj.GetUID())
	status := asMap(obj.Object["status"])
	for id, h := range o.declaration.all() {
		if !h.filter.matches(obj.Object) {
			continue
		}
		var last *call
		for _, k := range o.calls[uid] {
			if k.id == id {
				last = k
			}
		}
		if last == nil || last.number <= o.unsaved[uid+" "+id] {
			continue // a part of what a killed process wrote may be there
		}
		for where, want := range last.asked {
			if got := own(obj, where, ownKey(id)); want != "" && got != want && !o.strays[uid+" "+ownKey(id)] {
				o.wrong("%s of %s asked for %s %s=%q, but there is %v", id, obj.GetName(), where, ownKey(id), want, got)
			}
		}
		if h.result && last.final && last.err == nil {
			want, _ := json.Marshal(o.result(last))
			if got, _ := json.Marshal(status[id]); string(got) != string(want) {
				o.wrong("the result of %s of %s is %s, want %s", id, obj.GetName(), got, want)
			}
		}
	}
	if want := o.flushes[uid]; want != "" && asMap(status["op"])["daemon"] != want {
		o.wrong("the daemon of %s flushed %q, but there is %v", obj.GetName(), want, asMap(status["op"])["daemon"])
	}
}

// own returns the value that a handler has written to an object.
func own(obj *unstructured.Unstructured, where, key string) any {
	switch where {
	case "status":
		return asMap(asMap(obj.Object["status"])["op"])[key]
	case "label":
		return obj.GetLabels()[ownPrefix+key]
	case "annotation":
		return obj.GetAnnotations()[ownPrefix+key]
	}
	return asMap(asMap(obj.Object["spec"])[ownSpec])[key]
}

// nothingIsLeftOver checks that only the base and a needed finalizer are left on an object.
//
// As in Kopf, records of a handling stay while the object matches no handler. The handling
// continues when it matches again.
func (o *oracle) nothingIsLeftOver(w *world, obj *unstructured.Unstructured) {
	defer o.finalizersAreRight(obj)
	if !o.isHandled(obj) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(obj.GetAnnotations())) {
		name, ours := strings.CutPrefix(key, storageKey)
		if _, moved := asMap(asMap(obj.Object["status"])["kopf"])["moved"]; moved {
			break // what the move to the status left in annotations is ignored
		}
		if ours && !strings.HasPrefix(name, "last-handled-configuration") && name != "gopf.bound" && !o.dropped[name] {
			o.wrong("%s has the annotation %s=%s", obj.GetName(), key, obj.GetAnnotations()[key])
		}
	}
	for id := range asMap(asMap(asMap(obj.Object["status"])["kopf"])["progress"]) {
		if !o.dropped[annotationName(id)] {
			o.wrong("%s has progress of %s in its status", obj.GetName(), id)
		}
	}
	w.outside.mu.Lock()
	defer w.outside.mu.Unlock()
	for id := range w.outside.records[string(obj.GetUID())] {
		if !o.dropped[annotationName(id)] {
			o.wrong("%s has progress of %s outside", obj.GetName(), id)
		}
	}
}

// isHandled reports whether a change handler matches the object.
func (o *oracle) isHandled(obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.declaration.handlers, func(h handler) bool {
		_, there := asMap(obj.Object["spec"])[h.field]
		return h.kind == "change" && h.filter.matches(obj.Object) || h.kind == "field" && there
	})
}

// finalizersAreRight checks that an object has the finalizer if and only if a handler needs
// it.
func (o *oracle) finalizersAreRight(obj *unstructured.Unstructured) {
	needed := slices.ContainsFunc(o.declaration.handlers, func(h handler) bool {
		mandatory := h.on&gopf.Delete != 0 || h.kind == "daemon" || h.kind == "timer"
		return mandatory && !h.optional && h.filter.matches(obj.Object)
	})
	if has := slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, storageKey) }); has != needed {
		o.wrong("%s has the finalizer: %v, want %v", obj.GetName(), has, needed)
	}
}

// deletionsAreHandled checks an object that is deleted.
func (o *oracle) deletionsAreHandled(uid string) {
	states := o.states[uid]
	first := slices.IndexFunc(states, func(s state) bool { return s.deleting })
	if first < 0 || !states[first].guarded {
		return // the operator had no chance
	}
	for _, h := range o.declaration.handlers {
		unmatched := slices.ContainsFunc(states[first:], func(s state) bool { return !h.filter.matches(s.object) })
		if h.on&gopf.Delete == 0 || h.optional || unmatched {
			continue
		}
		ends := 0
		for _, k := range o.calls[uid] {
			if (k.id == h.id || k.id == h.formerly) && k.final && k.reason == gopf.Delete {
				ends++
			}
		}
		if ends == 0 {
			o.wrong("%s has never finished for %s, which is gone", h.id, asMap(states[0].object["metadata"])["name"])
		}
	}
}

// annotationName returns the end of the annotation name of a record.
func annotationName(id string) string { return strings.ReplaceAll(id, "/", ".") }
