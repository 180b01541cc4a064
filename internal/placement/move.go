package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/terminal"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Move describes a move of the state of all objects of an operator.
type Move struct {
	Connection connect.Config
	Handlers   handler.Set          // of all families
	Namespaces discovery.Namespaces // empty means the whole cluster
	Process    process.Config       // its storages are those of the operator
	Log        *slog.Logger

	ToStatus bool // otherwise to annotations
	DryRun   bool // only count
	Out      io.Writer
}

// Run moves the state of all objects with change handlers. It calls no handler. A move
// that was interrupted continues with another call.
func (m Move) Run(ctx context.Context) error {
	in, ok := m.Process.Progress.(interface{ State() *storage.StatusState })
	if !ok || m.ToStatus && !isInStatus(m.Process.Progress) {
		return errors.New("move the state: the operator keeps no state in the status; set Settings.Persistence with gopf.StateInStatus, or Persistence.FormerStatusKeys to move it to annotations")
	}
	return connect.Command(ctx, m.Connection, func(ctx context.Context, client *kube.Client, cluster []kind.Info) error {
		plan := discovery.Match(m.Handlers, cluster)
		if plan.Conflict != nil {
			return plan.Conflict
		}
		namespaces := []string{""}
		if len(m.Namespaces) > 0 {
			var err error
			if namespaces, err = connect.Matching(ctx, client, m.Namespaces); err != nil {
				return err
			}
		}
		var keeps map[kinds.GroupVersionResource]bool
		if m.ToStatus {
			keeps = New(m.Process.Progress, client, m.Log).Find(ctx, m.Handlers, cluster)
		}
		var failures []error
		byName := func(a, b discovery.Served) int { return cmp.Compare(a.Info.String(), b.Info.String()) }
		for _, served := range slices.SortedFunc(maps.Values(plan.Kinds), byName) {
			changes := served.Handlers.Of(handler.Changes)
			switch {
			case !recorded(served.Handlers) || builtIn(served.Info):
				continue
			case m.ToStatus && !keeps[served.Info.GVR()]:
				failures = append(failures, fmt.Errorf("%s: the status cannot keep the state", served.Info))
				continue
			}
			config := m.Process
			config.Progress, config.Base = in.State().Storages(m.ToStatus)
			p := &process.Processor{Resource: served.Info, Handlers: changes, Config: config, API: client, Log: m.Log}
			if owning := served.Handlers.Of(handler.Reconciles); len(owning) > 0 {
				p.Reconcile = &process.Reconcile{Handlers: owning} // for the ids of their inventories
			}
			if !served.Info.Namespaced {
				failures = append(failures, m.moveAll(ctx, client, p, served, ""))
				continue
			}
			for _, namespace := range namespaces {
				failures = append(failures, m.moveAll(ctx, client, p, served, namespace))
			}
		}
		return errors.Join(failures...)
	})
}

func isInStatus(s storage.Progress) bool {
	placed, ok := s.(storage.Placed)
	return ok && placed.InStatus()
}

// moveAll moves the state of the objects of one resource in one namespace, or in all
// namespaces. Objects that fail do not stop the others.
func (m Move) moveAll(ctx context.Context, client *kube.Client, p *process.Processor, served discovery.Served, namespace string) error {
	seen, moved, failed := 0, 0, 0
	var last error
	title := p.Resource.String()
	if namespace != "" {
		title += " in " + namespace
	}
	verb := "moved"
	if m.DryRun {
		verb = "to move"
	}
	one := func(body *object.Body) {
		seen++
		done, err := p.Relocate(ctx, body, m.DryRun)
		if done && err == nil {
			moved++
		}
		if err != nil {
			failed++
			last = fmt.Errorf("%s %s/%s: %w", p.Resource, body.Namespace, body.Name, err)
			fmt.Fprintf(m.Out, "failed: %s\n", terminal.Line(last.Error()))
		}
	}
	page := ""
	for {
		items, next, err := client.Page(ctx, p.Resource, namespace, kube.ListOptions{Selector: served.Select}, page)
		if apierrors.IsResourceExpired(err) && page != "" {
			page, seen = "", 0 // objects that were moved need no other move
			continue
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", title, err)
		}
		for _, body := range items {
			if one(body); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		fmt.Fprintf(m.Out, "%s: %d seen, %d %s, %d failed\n", title, seen, moved, verb, failed)
		if page = next; page == "" {
			return last
		}
	}
}
