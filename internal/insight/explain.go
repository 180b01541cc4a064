package insight

import (
	"context"
	"fmt"
	"time"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/panics"
	"gopf.dev/gopf/internal/pause"
	"gopf.dev/gopf/internal/placement"
	"gopf.dev/gopf/internal/process"
)

// Explain reports the state of an object, and calls use with the report. restarted means
// that the operator has just started: resume handlers take part.
func (op *Operator) Explain(ctx context.Context, n Name, restarted bool, use func(*explain.Report) error) error {
	return op.connected(ctx, func(ctx context.Context, s *session) error {
		p, served, body, err := s.get(ctx, n)
		if err != nil {
			return err
		}
		report, err := s.explain(ctx, p, served, body, restarted)
		if err != nil {
			return err
		}
		s.noteNamespace(ctx, report)
		return use(report)
	})
}

func (s *session) explain(ctx context.Context, p *process.Processor, served discovery.Served, body *object.Body, restarted bool) (*explain.Report, error) {
	outlook, err := outlookOf(ctx, p, body, restarted)
	if err != nil {
		return nil, err
	}
	timers := map[*handler.Handler]bool{}
	for h, spec := range s.Daemons {
		timers[h] = spec.Timer
	}
	return explain.Of(explain.Subject{
		Body: body, Resource: served.Info, Outlook: outlook, Finalizer: p.Config.Finalizer, Former: p.Config.Former, Timers: timers,
		Selector: served.Select, Selected: handler.Selects(selectorOf(served), body),
	}), nil
}

// noteNamespace adds the pause of the namespace to a report. Only the process knows whether
// it watches namespaces. An account that must not read namespaces gets no note.
func (s *session) noteNamespace(ctx context.Context, r *explain.Report) {
	if r.Object.Namespace == "" || r.Object.Deleting || r.Pause != nil {
		return
	}
	body, err := s.client.Get(ctx, kube.Target{Info: discovery.NamespaceInfo(), Name: r.Object.Namespace})
	if err != nil {
		return
	}
	var prefixes []string
	if s.Name != "" {
		prefixes = append(prefixes, s.Name)
	}
	if found := pause.Of(body.Annotations(), prefixes, time.Now()); found != nil {
		found.Namespace = body.Name
		r.Notes = append(r.Notes, "Paused by the annotation "+found.Where()+", if the operator runs with patterns of namespaces. Other operators do not watch namespaces.")
	}
}

// outlookOf returns the outlook on an object. A panic of a filter is an error: filters may
// use memos or clients that only a running operator has.
func outlookOf(ctx context.Context, p *process.Processor, body *object.Body, restarted bool) (o *process.Outlook, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a filter panicked: %v\n%s", v, panics.Stack())
		}
	}()
	return p.Outlook(ctx, body, restarted)
}

// selectorOf returns the label selector of a resource. nil means all objects.
func selectorOf(served discovery.Served) metalabels.Selector {
	if served.Select == "" {
		return nil
	}
	selector, _ := metalabels.Parse(served.Select) // it was checked when it was declared
	return selector
}

// ExplainServed reads one object over the connection of a running operator, and explains it.
// places has the places of the state of all kinds.
func (op *Operator) ExplainServed(ctx context.Context, client *kube.Client, places *placement.Places, served discovery.Served, namespace, name string) (*explain.Report, error) {
	s := &session{Operator: op, client: client, places: places}
	body, err := client.Get(ctx, kube.Target{Info: served.Info, Namespace: namespace, Name: name})
	if err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", served.Info.Plural, name, err)
	}
	return s.explain(ctx, s.processor(served), served, body, false)
}
