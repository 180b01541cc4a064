// Package insight has the commands about single objects of an operator: explain, pause,
// continue and retry, and the release of all objects. They run in the process of the user,
// with the user's credentials, and need no running operator: its state is on the objects.
package insight

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/placement"
	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/suggest"
	"gopf.dev/gopf/kind"
)

// Operator is the operator that the commands are about.
type Operator struct {
	Connection connect.Config
	Handlers   handler.Set                       // of all families
	Daemons    map[*handler.Handler]*daemon.Spec // of the daemons and timers
	Namespaces discovery.Namespaces              // empty means the whole cluster
	Process    process.Config
	Log        *slog.Logger
	Name       string // of the operator; "" means none
	Webhooks   string // the name of the webhook configurations; "" means none
	Lease      Lease
	Peering    connect.Scope // its name is empty if the operator has no peering
	Indices    map[*handler.Handler]index.Target

	// Cluster returns the API that handlers use in a plan.
	Cluster func(*apiclient.Objects, *kube.Client) handler.API
}

// Lease names the Lease of the leader election. An empty name means that there is none.
type Lease struct{ Namespace, Name string }

// session is an open connection with the resources that the operator serves.
type session struct {
	*Operator
	client    *kube.Client
	namespace string       // of the login
	config    *rest.Config // of the login
	cluster   []kind.Info
	served    []discovery.Served // sorted by name
	places    *placement.Places
}

// connected opens a session for do.
func (op *Operator) connected(ctx context.Context, do func(context.Context, *session) error) error {
	return connect.CommandIn(ctx, op.Connection, func(ctx context.Context, c connect.Connection, cluster []kind.Info) error {
		plan := discovery.Match(op.Handlers, cluster)
		if plan.Conflict != nil {
			return plan.Conflict
		}
		s := &session{Operator: op, client: c.Client, namespace: c.Namespace, config: c.Config, cluster: cluster}
		byName := func(a, b discovery.Served) int { return strings.Compare(a.Info.String(), b.Info.String()) }
		s.served = slices.SortedFunc(maps.Values(plan.Kinds), byName)
		s.places = placement.New(op.Process.Progress, c.Client, slog.New(slog.DiscardHandler))
		s.places.Update(s.places.Find(ctx, op.Handlers, cluster))
		return do(ctx, s)
	})
}

// Name names objects, as on a command line.
type Name struct {
	Kind      string // as in "db/main": a plural, a singular, a kind or a short name, with or without a group
	Name      string
	Namespace string // "" means that of the login
}

// ParseName parses KIND/NAME.
func ParseName(text string) (Name, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return Name{}, fmt.Errorf("%q names no object; use KIND/NAME, for example databases/main", text)
	}
	return Name{Kind: kind, Name: name}, nil
}

// find returns the served resource with the name.
func (s *session) find(name string) (discovery.Served, error) {
	var found []discovery.Served
	var known []string
	for _, served := range s.served {
		known = append(known, served.Info.Plural)
		if isNamed(served.Info, name) {
			found = append(found, served)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return discovery.Served{}, fmt.Errorf("the operator serves no resource %q%s; it serves %s",
			name, suggest.DidYouMean(name, known, "%q"), strings.Join(known, ", "))
	}
	return discovery.Served{}, fmt.Errorf("%q is ambiguous: use PLURAL.GROUP", name)
}

// isNamed reports whether a user may mean the resource.
func isNamed(i kind.Info, name string) bool {
	plain, group, grouped := strings.Cut(name, ".")
	if grouped && group != i.Group && group != i.Version+"."+i.Group {
		return false
	}
	same := func(one string) bool { return strings.EqualFold(one, plain) }
	return same(i.Plural) || same(i.Singular) || same(i.Kind) || slices.ContainsFunc(i.ShortNames, same)
}

// target returns the location of an object.
func (s *session) target(served discovery.Served, n Name) kube.Target {
	t := kube.Target{Info: served.Info, Name: n.Name}
	if served.Info.Namespaced {
		t.Namespace = n.Namespace
		if t.Namespace == "" {
			t.Namespace = s.namespace
		}
		if t.Namespace == "" {
			t.Namespace = "default"
		}
	}
	return t
}

// get reads the object with the name, and returns the processor of its kind.
func (s *session) get(ctx context.Context, n Name) (*process.Processor, discovery.Served, *object.Body, error) {
	served, err := s.find(n.Kind)
	if err != nil {
		return nil, served, nil, err
	}
	body, err := s.client.Get(ctx, s.target(served, n))
	if err != nil {
		return nil, served, nil, fmt.Errorf("read %s/%s: %w%s", served.Info.Plural, n.Name, err, absence(served.Info, err))
	}
	return s.processor(served), served, body, nil
}

// processor returns a processor for decisions about objects of a resource. It runs no
// turns.
func (s *session) processor(served discovery.Served) *process.Processor {
	changes, background, watchers := served.Handlers.Of(handler.Changes), served.Handlers.Of(handler.Background), served.Handlers.Of(handler.Events)
	p := &process.Processor{
		Resource: served.Info, Handlers: changes, Watchers: watchers,
		Fields: slices.Concat(changes.Fields(), background.Fields(), watchers.Fields()),
		Config: s.places.Config(s.Process, served.Info), API: s.client, Log: slog.New(slog.DiscardHandler),
		Post: func(recorder.Event) {},
	}
	if len(background) > 0 {
		var config daemon.Config
		for _, h := range background {
			config.Specs = append(config.Specs, s.Daemons[h])
		}
		p.Daemons = daemon.NewSet(config)
	}
	if owning := served.Handlers.Of(handler.Reconciles); len(owning) > 0 {
		p.Reconcile = &process.Reconcile{Handlers: owning, Runner: &reconcile.Runner{Store: childwatch.NewStore(s.Name, func() uint64 { return 0 }), Name: s.Name}}
	}
	selector := selectorOf(served)
	left := func(b *object.Body) bool { return !handler.Selects(selector, b) }
	switch {
	case served.Select == "":
	case served.HandOver:
		p.HandedOver = left
	default:
		p.Left = left
	}
	return p
}

// advise adds the missing permission to an error of the API server about reserved
// annotations.
func advise(err error, info kind.Info) error {
	if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the verb \""+policy.Verb+"\"") {
		return err
	}
	return fmt.Errorf("%w; grant the rule {apiGroups: [%q], resources: [%q], verbs: [%q]}", err, info.Group, info.Plural, policy.Verb)
}

// absence returns what to do if an object was not found. "" means that there is nothing to add.
func absence(of kind.Info, err error) string {
	if !apierrors.IsNotFound(err) || !of.Namespaced {
		return ""
	}
	return "; check its name, or choose another namespace with --namespace"
}
