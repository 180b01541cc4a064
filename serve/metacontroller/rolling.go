package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// form is a revision of the parent and the response of the hook for it.
type form struct {
	object   *unstructured.Unstructured // of the ControllerRevision
	stored   bool
	parent   *unstructured.Unstructured
	response *CompositeHookResponse
}

// parallelForms is the number of hook calls of one sync at a time. A parent has as many forms as
// it has ControllerRevisions, and its tenant may create those.
const parallelForms = 4

// trim drops the parts of a response for an older revision that no rollout needs: the status, and
// the children that the revision does not claim.
func (f *form) trim() {
	claimed := set(members(f.object))
	f.response.Status = nil
	f.response.Children = slices.DeleteFunc(f.response.Children, func(o *unstructured.Unstructured) bool { return !claimed[memberOf(o)] })
}

// memberOf returns the name of a child in a revision.
func memberOf(o *unstructured.Unstructured) Member {
	return Member{o.GroupVersionKind().Group, o.GetKind(), o.GetName()}
}

// roll calls the hook for all revisions of the parent, moves children between them, and
// returns one response.
func (s *step) roll(ctx context.Context, selector labels.Selector, observed, related objects) (*CompositeHookResponse, error) {
	if s.parent.GetNamespace() == "" {
		return nil, fmt.Errorf("%s: rolling updates need a namespaced parent, because ControllerRevisions are namespaced", describe(s.parent))
	}
	forms, err := s.forms(ctx, selector)
	if err != nil {
		return nil, err
	}
	failures := make([]error, len(forms))
	slots := make(chan struct{}, parallelForms)
	var calls sync.WaitGroup
	for i, f := range forms {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			failures[i] = safely(func() (err error) {
				f.response, err = s.response(ctx, f.parent, observed, related)
				if err == nil && i > 0 {
					f.trim()
				}
				return err
			})
		})
	}
	calls.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	latest := forms[0]
	rollout := Rollout{
		Latest: Revision{Members: members(latest.object), Desired: latest.response.Children},
		Rolling: func(o *unstructured.Unstructured) *UpdateStrategy {
			if c := s.children[kindKey(o.GetAPIVersion(), o.GetKind())]; c.rolling() {
				return &c.strategy
			}
			return nil
		},
		Observe: observed.get,
		Equal:   equalForm,
		Member:  memberOf,
	}
	if s.env.fieldManager != "" {
		rollout.Equal = equalContent
	}
	for _, f := range forms[1:] {
		rollout.Older = append(rollout.Older, Revision{Members: members(f.object), Desired: f.response.Children})
	}
	claims, older, desired, condition := Roll(rollout)
	if err := s.record(ctx, forms, append([][]Member{claims}, older...)); err != nil {
		return nil, fmt.Errorf("%s: can't reconcile ControllerRevisions: %w", describe(s.parent), err)
	}
	response := *latest.response
	response.Children = desired
	if response.Status == nil {
		response.Status = map[string]any{}
	}
	if condition == nil {
		condition = &Condition{"True", "OnLatestRevision", "latest ControllerRevision: " + latest.object.GetName()}
	}
	SetCondition(response.Status, *condition)
	for _, f := range forms[1:] {
		response.Finalized = response.Finalized && f.response.Finalized
		if other := f.response.ResyncAfterSeconds; other > 0 && (response.ResyncAfterSeconds <= 0 || other < response.ResyncAfterSeconds) {
			response.ResyncAfterSeconds = other
		}
	}
	return &response, nil
}

// forms returns the latest revision and then the older ones.
func (s *step) forms(ctx context.Context, selector labels.Selector) ([]*form, error) {
	patch := Patch(s.parent.Object, s.of.paths)
	marks := labels.Set{groupLabel: s.of.gvr.Group, resourceLabel: s.of.gvr.Resource}
	requirements, _ := marks.AsSelector().Requirements()
	selector = selector.Add(requirements...)
	var latest *form
	var older []*form
	alive := s.aliveOnce(ctx)
	for _, obj := range s.storedIn(revisionResource, s.parent.GetNamespace()) {
		member, err := s.claimOne(ctx, revisionResource, obj, selector, alive)
		if err != nil {
			return nil, err
		}
		if !member {
			continue
		}
		if obj, err = s.whole(ctx, revisionResource, obj); err != nil {
			return nil, err
		}
		if obj == nil {
			continue
		}
		stored, _ := obj.Object["parentPatch"].(map[string]any)
		if latest == nil && reflect.DeepEqual(stored, patch) {
			latest = &form{object: obj, stored: true, parent: s.parent}
			continue
		}
		older = append(older, &form{object: obj, stored: true, parent: Restored(s.parent, stored, s.of.paths)})
	}
	slices.SortFunc(older, func(a, b *form) int { return strings.Compare(a.object.GetName(), b.object.GetName()) })
	if latest == nil {
		obj, err := s.newRevision(patch, marks)
		if err != nil {
			return nil, err
		}
		latest = &form{object: obj, parent: s.parent}
	}
	return append([]*form{latest}, older...), nil
}

// newRevision returns a ControllerRevision for the parent.
func (s *step) newRevision(patch map[string]any, marks labels.Set) (*unstructured.Unstructured, error) {
	name, err := RevisionName(s.of.gvr.Resource, s.of.gvr.Group, string(s.parent.GetUID()), patch)
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	if s.spec.GenerateSelector {
		own[uidLabel] = string(s.parent.GetUID())
	} else if template, ok, _ := unstructured.NestedStringMap(s.parent.Object, "spec", "template", "metadata", "labels"); ok {
		own = template
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": revisionResource.apiVersion, "kind": revisionResource.kind, "parentPatch": patch}}
	obj.SetName(name)
	obj.SetNamespace(s.parent.GetNamespace())
	obj.SetLabels(labels.Merge(own, marks))
	_ = unstructured.SetNestedSlice(obj.Object, []any{controllerRef(s.parent)}, "metadata", "ownerReferences")
	return obj, nil
}

// record writes the members of the revisions. Older revisions without members are deleted.
func (s *step) record(ctx context.Context, forms []*form, claims [][]Member) error {
	in := s.in(revisionResource, s.parent.GetNamespace())
	for i, f := range forms {
		uid := f.object.GetUID()
		switch {
		case !f.stored:
			obj := f.object.DeepCopy()
			setMembers(obj, claims[i])
			if _, err := in.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("can't create ControllerRevision %s for %s: %w", obj.GetName(), describe(s.parent), err)
			}
		case i > 0 && len(claims[i]) == 0:
			err := in.Delete(ctx, f.object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("can't delete ControllerRevision %s for %s: %w", f.object.GetName(), describe(s.parent), err)
			}
		case !sameMembers(members(f.object), claims[i]):
			obj := f.object.DeepCopy()
			setMembers(obj, claims[i])
			if _, err := in.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("can't update ControllerRevision %s for %s: %w", obj.GetName(), describe(s.parent), err)
			}
		}
	}
	return nil
}

// members returns the children that a ControllerRevision claims.
func members(revision *unstructured.Unstructured) (list []Member) {
	groups, _, _ := unstructured.NestedSlice(revision.Object, "children")
	for _, item := range groups {
		g, _ := item.(map[string]any)
		group, _ := g["apiGroup"].(string)
		kind, _ := g["kind"].(string)
		names, _, _ := unstructured.NestedStringSlice(g, "names")
		for _, name := range names {
			list = append(list, Member{group, kind, name})
		}
	}
	return list
}

// setMembers writes members into a ControllerRevision, by group and kind.
func setMembers(revision *unstructured.Unstructured, list []Member) {
	var groups []any
	for _, m := range list {
		i := slices.IndexFunc(groups, func(g any) bool {
			e := g.(map[string]any)
			return e["apiGroup"] == m.Group && e["kind"] == m.Kind
		})
		if i < 0 {
			i, groups = len(groups), append(groups, map[string]any{"apiGroup": m.Group, "kind": m.Kind, "names": []any{}})
		}
		e := groups[i].(map[string]any)
		e["names"] = append(e["names"].([]any), m.Name)
	}
	if len(groups) == 0 {
		delete(revision.Object, "children")
		return
	}
	revision.Object["children"] = groups
}

func sameMembers(a, b []Member) bool {
	in := set(b)
	return len(a) == len(b) && !slices.ContainsFunc(a, func(m Member) bool { return !in[m] })
}
