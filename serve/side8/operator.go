package side8

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/serve/call"
	"gopf.dev/gopf/serve/spec"
)

// Options are the command line of Side8.
type Options struct {
	Group, Version, Resource string
	Apply, Delete            string // paths of the scripts
}

// Limits of scripts.
const (
	processes    = 10
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
)

// Declare declares the handler of the resource. It runs a script for every event of an
// object, as Side8 does. Unlike Side8, it retries a failed script with exponential backoff,
// keeps finalizers of other clients, and writes the status to the status subresource if the
// kind has one.
func Declare(op *gopf.Operator, o Options) {
	s := &scripts{options: o, slots: queue.NewSlots(processes)}
	op.Resource(o.Group+"/"+o.Version+"/"+o.Resource).OnEvent("side8", s.handle)
}

type scripts struct {
	options Options
	slots   *queue.Slots
}

// handled is the memo of an object: the version that the last run saw.
type handled struct{ version string }

func (s *scripts) handle(ctx context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
	if e.Type == "DELETED" {
		return nil
	}
	memo, obj := gopf.Memo[handled](e.Subject), e.Object
	if memo.version != "" && memo.version == obj.GetResourceVersion() {
		return nil // a retry has seen it
	}
	for delay := firstRetry; ; delay = min(2*delay, longestRetry) {
		err := s.step(ctx, e, obj)
		if err == nil {
			memo.version = obj.GetResourceVersion()
			return nil
		}
		e.Log.Warn("The script failed; retrying.", "error", err, "delay", delay)
		e.Event(gopf.Failure, "ScriptFailed", "%v", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(delay):
		}
		// The object may have changed, or may be deleted by now.
		newer := obj.DeepCopy()
		if err := e.API.Get(ctx, newer); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the object again: %w", err)
		}
		obj = newer
	}
}

// step runs the script that is due, and records the changes of the object.
func (s *scripts) step(ctx context.Context, e *gopf.WatchEvent[gopf.Unstructured], obj gopf.Unstructured) error {
	change, err := Step(obj, func(script Script) (any, error) {
		path := s.options.Apply
		if script == Delete {
			path = s.options.Delete
		}
		return s.run(ctx, e.Log, obj, path)
	})
	if err != nil {
		return err
	}
	if change.Ran {
		e.Patch.Set("status", change.Status)
	}
	if change.Hold || change.Release {
		e.Patch.Edit(func(o gopf.Unstructured) {
			others := slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == Finalizer })
			if change.Hold && o.GetDeletionTimestamp() == nil {
				others = append(others, Finalizer)
			}
			o.SetFinalizers(others)
		})
	}
	return nil
}

// run runs a script and returns its output. Namespaces take turns. The variables of an object
// take up to 6 MiB, so they are made when it is its turn.
func (s *scripts) run(ctx context.Context, log *slog.Logger, obj gopf.Unstructured, script string) (any, error) {
	release, ok := call.Acquire(s.slots, nil, obj.GetNamespace(), ctx.Done(), nil)
	if !ok {
		return nil, context.Cause(ctx)
	}
	defer release()
	env, err := Variables(obj.DeepCopy().Object)
	if err != nil {
		return nil, err
	}
	text, err := call.Run(ctx, call.Options{Call: spec.Call{Exec: []string{script}}, Dir: "."}, append(os.Environ(), env...), log)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Variables returns the additional environment of a script. A field that no
// environment can hold is left out. It adds an empty list of finalizers to the object.
func Variables(object map[string]any) ([]string, error) {
	meta, _ := object["metadata"].(map[string]any)
	if meta != nil && meta["finalizers"] == nil {
		meta["finalizers"] = []any{}
	}
	text, err := call.Encode(object)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	_, values, err := Environment(text)
	if err != nil {
		return nil, err
	}
	env := []string{"_DOLLAR=$", "K8S=" + string(text)}
	for name, value := range values {
		if strings.ContainsRune(name+value, 0) || strings.Contains(name, "=") {
			continue // the system cannot pass it
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}
