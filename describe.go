package gopf

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/webhook"
)

// Describe returns the declarations of the operator as data. It is for package cli. It
// starts nothing and connects to nothing, so changes of settings by startup handlers are
// not included.
func (TestSeam) Describe(op *Operator) (*describe.Operator, error) {
	if err := op.Err(); err != nil {
		return nil, err
	}
	state, err := op.describeState()
	if err != nil {
		return nil, err
	}
	d := &describe.Operator{Version: describe.Version, Name: op.name, Uses: op.uses, State: state, Settings: op.describeSettings()}
	for _, h := range op.handlers {
		d.Handlers = append(d.Handlers, op.describeHandler(h))
	}
	for _, kind := range slices.Sorted(maps.Keys(op.activities)) {
		for _, a := range op.activities[kind] {
			d.Handlers = append(d.Handlers, describe.Handler{ID: a.id, Family: string(kind), Where: a.where})
		}
	}
	d.Types = op.describeTypes()
	return d, nil
}

func (op *Operator) describeHandler(h *handler.Handler) describe.Handler {
	d := describe.Handler{
		ID: h.ID, Family: op.family(h), Where: h.Where, Resource: op.describeResource(h.Of), Select: h.Select, Blocking: h.Mandatory,
		Filtered: len(h.Criteria.Labels)+len(h.Criteria.Annotations)+len(h.Criteria.Fields)+len(h.When) > 0,
	}
	for reason := range h.Reasons {
		d.Reasons = append(d.Reasons, string(reason))
	}
	slices.Sort(d.Reasons)
	if h.Change != nil {
		d.Field = jsonvalue.Path(h.Change.Path).String()
	}
	if a := h.Admission; a != nil {
		d.Review = &describe.Review{Operations: a.Operations, Subresource: a.Subresource, Persistent: a.Persistent}
	}
	if h.Reconcile != nil {
		for _, o := range h.Reconcile.Owned {
			d.Owns = append(d.Owns, describe.Owned{Resource: op.describeResource(o.Of), Anywhere: o.Anywhere})
		}
		for _, of := range h.Reconcile.Watched {
			d.Watches = append(d.Watches, op.describeResource(of))
		}
	}
	return d
}

func (op *Operator) family(h *handler.Handler) string {
	switch h.Family {
	case handler.Events:
		return describe.Event
	case handler.Background:
		if op.daemons[h].Timer {
			return describe.Timer
		}
		return describe.Daemon
	case handler.Indexing:
		return describe.Index
	case handler.Reviews:
		if h.Admission.Mutating {
			return describe.Mutate
		}
		return describe.Validate
	case handler.Reconciles:
		return describe.Reconcile
	default:
		return describe.Change
	}
}

// describeResource names the resource of a selector. A kind in camel case gets its usual
// plural. A name without a group gets that of the Go type, if the type is built in.
func (op *Operator) describeResource(of kind.Selector) describe.Resource {
	d := describe.Resource{Text: of.String()}
	group, grouped := of.Group()
	if !of.Specific() {
		return d
	}
	if grouped {
		parts := strings.Split(d.Text, "/")
		d.Group, d.Plural = group, parts[len(parts)-1]
		if len(parts) == 3 || len(parts) == 2 && group == "" && parts[0] != "core" {
			d.Version = parts[len(parts)-2]
		}
		if first := d.Plural[:1]; first != strings.ToLower(first) {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: d.Plural})
			d.Plural = plural.Resource
		}
		return d
	}
	for t, selectors := range op.types {
		if slices.ContainsFunc(selectors, func(s kind.Selector) bool { return s.String() == d.Text }) {
			if gvk, ok := apiclient.BuiltIn(t); ok {
				plural, _ := meta.UnsafeGuessKindToResource(gvk)
				d.Group, d.Version, d.Plural = plural.Group, plural.Version, plural.Resource
			}
		}
	}
	return d
}

// describeTypes returns the declared Go types, sorted.
func (op *Operator) describeTypes() (all []describe.Type) {
	for t, selectors := range op.types {
		if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
			continue
		}
		_, builtIn := apiclient.BuiltIn(t)
		for _, of := range selectors {
			all = append(all, describe.Type{
				Resource: op.describeResource(of), Package: t.Elem().PkgPath(), Name: t.Elem().Name(),
				Status: hasStatus(t.Elem()), BuiltIn: builtIn,
				Served: slices.ContainsFunc(op.handlers, func(h *handler.Handler) bool { return h.Of.String() == of.String() }),
			})
		}
	}
	slices.SortFunc(all, func(a, b describe.Type) int {
		return cmp.Or(strings.Compare(a.Resource.Text, b.Resource.Text), strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
	return all
}

// hasStatus reports whether the struct has a field for the status.
func hasStatus(t reflect.Type) bool {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == "status" {
			return true
		}
	}
	return false
}

func (op *Operator) describeState() (describe.State, error) {
	s, err := op.persistence()
	if err != nil {
		return describe.State{}, err
	}
	d := describe.State{Finalizer: s.Finalizer, StatusKey: s.StatusKey}
	for _, one := range []any{s.Progress, s.Base} {
		tracer, ok := one.(storage.Tracer)
		if !ok {
			d.Unknown = true
			continue
		}
		traces, ok := tracer.Traces()
		if !ok {
			d.Unknown = true
			continue
		}
		d.Prefixes, d.Keys = append(d.Prefixes, traces.Prefixes...), append(d.Keys, traces.Keys...)
	}
	slices.Sort(d.Prefixes)
	slices.Sort(d.Keys)
	d.Prefixes, d.Keys = slices.Compact(d.Prefixes), slices.Compact(d.Keys)
	return d, nil
}

func (op *Operator) describeSettings() describe.Settings {
	s := op.Settings
	d := describe.Settings{
		Posting: s.Posting.Enabled, ScanningDisabled: s.Scanning.Disabled,
		Election: s.Election.Enabled, ElectionName: s.Election.Name, ElectionIn: s.Election.Namespace,
		Standalone: s.Peering.Standalone, Peering: s.Peering.Name, PeeringMandatory: s.Peering.Mandatory,
		Health: s.Health.Address, Metrics: s.Metrics.Address,
		SecureMetrics: s.Metrics.Secure, SecureInsight: s.Insight.Secure && s.Insight.Address != "",
		ExitSeconds: int(s.Process.UltimateExitingTimeout / time.Second), Managed: s.Admission.Managed,
	}
	if s.Admission.Server != nil {
		d.Webhook = strings.TrimPrefix(fmt.Sprintf("%T", s.Admission.Server), "*")
	}
	if service, ok := s.Admission.Server.(webhook.Service); ok {
		d.WebhookService, d.WebhookNamespace = service.Name, service.Namespace
		d.WebhookPort, d.ServicePort = service.Listen.Port, service.Port
		if service.Keys == nil && service.Listen.CertFile == "" {
			d.WebhookSecret = cmp.Or(service.Secret, service.Name+"-webhook")
		}
	}
	return d
}
