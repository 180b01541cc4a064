package insight

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/pause"
)

// Objects selects the objects of a command: those with names, or all objects of a resource
// that match a label selector.
type Objects struct {
	Names    []Name
	Kind     string // of all selected objects, if there are no names
	Selector string // label selector; "" means all objects
}

// Pausing is a pause of objects, or its end.
type Pausing struct {
	Objects
	Until    time.Time // zero means no end
	Reason   string
	Continue bool // end the pause
	Out      io.Writer
}

// Pause pauses objects for this operator, or continues them. It prints one line for each.
func (op *Operator) Pause(ctx context.Context, p Pausing) error {
	return op.connected(ctx, func(ctx context.Context, s *session) error {
		return s.each(ctx, p.Objects, func(ctx context.Context, served discovery.Served, body *object.Body) error {
			return s.pause(ctx, p, served, body)
		})
	})
}

// pause writes the annotation of one object.
func (s *session) pause(ctx context.Context, p Pausing, served discovery.Served, body *object.Body) error {
	annotations := map[string]any{}
	name := served.Info.Plural + "/" + body.Name
	key := s.pauseKey(served)
	done := "paused"
	if p.Continue {
		done = "continued"
		for _, one := range []string{pause.Key, key} {
			if _, ok := body.Annotations()[one]; ok {
				annotations[one] = nil
			}
		}
		if len(annotations) == 0 {
			fmt.Fprintf(p.Out, "%s was not paused\n", name)
			return nil
		}
	} else {
		annotations[key] = pause.Format(p.Until, p.Reason)
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": body.UID, "annotations": annotations}})
	if err != nil {
		return err
	}
	t := kube.Target{Info: served.Info, Namespace: body.Namespace, Name: body.Name}
	if _, err := s.client.Patch(ctx, t, types.MergePatchType, raw); err != nil {
		return fmt.Errorf("%s: %w", name, advise(err, served.Info))
	}
	fmt.Fprintf(p.Out, "%s %s\n", name, done)
	return nil
}

// pausable reads an object of the operator, or a namespace.
func (s *session) pausable(ctx context.Context, n Name) (discovery.Served, *object.Body, error) {
	_, unserved := s.find(n.Kind)
	if namespaces := discovery.NamespaceInfo(); unserved != nil && slices.Contains([]string{"namespace", "namespaces", "ns"}, strings.ToLower(n.Kind)) {
		body, err := s.client.Get(ctx, kube.Target{Info: namespaces, Name: n.Name})
		if err != nil {
			return discovery.Served{}, nil, fmt.Errorf("read the namespace %s: %w", n.Name, err)
		}
		return discovery.Served{Info: namespaces}, body, nil
	}
	_, served, body, err := s.get(ctx, n)
	return served, body, err
}

// pauseKey returns the annotation that pauses objects for this operator. An operator with a name
// has its own annotation, unless the record of a handler is stored under the same key.
func (s *session) pauseKey(served discovery.Served) string {
	taken := slices.ContainsFunc(served.Handlers.Of(handler.Changes), func(h *handler.Handler) bool { return h.ID == "pause" })
	if s.Name == "" || taken {
		return pause.Key
	}
	return pause.KeyOf(s.Name)
}

// each calls do for all selected objects. Objects that fail do not stop the others; their
// errors are joined.
func (s *session) each(ctx context.Context, o Objects, do func(context.Context, discovery.Served, *object.Body) error) error {
	var failures []string
	for _, n := range o.Names {
		served, body, err := s.pausable(ctx, n)
		if err == nil {
			err = do(ctx, served, body)
		}
		if err != nil {
			failures = append(failures, err.Error())
		}
	}
	if len(o.Names) == 0 {
		served, err := s.find(o.Kind)
		if err != nil {
			return err
		}
		err = s.list(ctx, served, o.Selector, nil, func(body *object.Body) {
			if err := do(ctx, served, body); err != nil {
				failures = append(failures, err.Error())
			}
		})
		if err != nil {
			return err
		}
	}
	if len(failures) > 0 {
		return fmt.Errorf("%s", strings.Join(failures, "\n"))
	}
	return nil
}

// list calls do for all objects of a resource in the namespaces of the command, page by
// page. It ignores the label selector of the handlers. If a page has expired, it starts the list
// again, so do must ignore objects that it has seen. skipped is called for objects that cannot
// be read, perhaps repeatedly. It may be nil.
func (s *session) list(ctx context.Context, served discovery.Served, selector string, skipped func(object.Identity), do func(*object.Body)) error {
	namespaces := []string{""}
	if served.Info.Namespaced && len(s.Namespaces) > 0 {
		var err error
		if namespaces, err = connect.Matching(ctx, s.client, s.Namespaces); err != nil {
			return err
		}
	}
	for _, namespace := range namespaces {
		for page := ""; ; {
			items, next, err := s.client.Page(ctx, served.Info, namespace, kube.ListOptions{Selector: selector, Skipped: skipped}, page)
			if apierrors.IsResourceExpired(err) && page != "" {
				page = ""
				continue
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", served.Info, err)
			}
			for _, body := range items {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				do(body)
			}
			if page = next; page == "" {
				break
			}
		}
	}
	return nil
}
