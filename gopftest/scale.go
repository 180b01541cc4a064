package gopftest

import (
	"fmt"
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scalePaths are the paths of the scale subresource's fields in an object. They begin
// with a dot.
type scalePaths struct {
	wanted, there string
	selector      string // of a string in custom resources, of a label selector in well-known kinds
}

// serveScale serves the scale subresource, which presents the number of replicas of all
// kinds in the same form.
func (x *exchange) serveScale(s *scope, verb string) error {
	var e *entry
	var err error
	switch verb {
	case "get":
		if e, err = s.get(); err == nil {
			if _, found := s.scalePaths().replicas(e.object()); !found && s.resource.custom() {
				err = apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", s.version.scale.wanted))
			}
		}
	case "update":
		var obj *unstructured.Unstructured
		if obj, err = x.object(); err != nil {
			return err
		}
		e, err = s.scale(func([]byte) ([]byte, error) { return encode(obj.Object), nil })
	case "patch":
		media, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";")
		var apply patcher
		if apply, err = s.patcher(types.PatchType(media), x.body); err != nil {
			return err
		}
		e, err = s.scale(func(doc []byte) ([]byte, error) {
			before, err := s.decoded(doc)
			if err != nil {
				return nil, err
			}
			after, err := apply(before)
			if err != nil {
				return nil, err
			}
			return encode(after.Object), nil
		})
	default:
		return apierrors.NewMethodNotSupported(s.resource.groupResource(), verb)
	}
	if err != nil {
		return err
	}
	scale, err := s.scaleOf(e.object())
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	x.write(http.StatusOK, encode(scale))
	return nil
}

// scale changes the number of replicas. next transforms the JSON of the Scale.
func (s *scope) scale(next func([]byte) ([]byte, error)) (*entry, error) {
	whole := *s
	whole.subresource, whole.unasked = "", true // the write goes to the object itself
	return whole.change("", func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		before, err := s.scaleOf(old)
		if err != nil {
			return nil, err
		}
		raw, err := next(encode(before))
		if err != nil {
			return nil, err
		}
		scale := &autoscalingv1.Scale{}
		if err := utiljson.Unmarshal(raw, scale); err != nil {
			return nil, s.unusable(raw, err)
		}
		if err := s.checkScale(scale); err != nil {
			return nil, err
		}
		obj := old.DeepCopy()
		if err := unstructured.SetNestedField(obj.Object, int64(scale.Spec.Replicas), s.scalePaths().at(s.scalePaths().wanted)...); err != nil {
			return nil, err
		}
		if scale.ResourceVersion != "" {
			obj.SetResourceVersion(scale.ResourceVersion)
		}
		return whole.track(obj, old), nil
	})
}

func (s *scope) checkScale(scale *autoscalingv1.Scale) error {
	switch {
	case scale.Kind != "Scale":
		return apierrors.NewBadRequest(fmt.Sprintf("no kind %q is registered for version %q", scale.Kind, scale.APIVersion))
	case scale.Name != s.name:
		return apierrors.NewBadRequest("the name of the object (" + scale.Name + ") does not match the name on the URL (" + s.name + ")")
	case scale.Spec.Replicas < 0:
		at := field.NewPath(s.version.scale.wanted)
		return apierrors.NewInvalid(s.groupKind(), s.name, field.ErrorList{field.Invalid(at, scale.Spec.Replicas, "should be a non-negative integer")})
	}
	return nil
}

// scaleOf returns the Scale of an object.
func (s *scope) scaleOf(obj *unstructured.Unstructured) (*autoscalingv1.Scale, error) {
	paths := s.scalePaths()
	selector, err := paths.labels(obj)
	if err != nil {
		return nil, err
	}
	wanted, found := paths.replicas(obj)
	if !found && !s.resource.custom() {
		wanted = 1 // the default of the real API server
	}
	there, _, err := unstructured.NestedInt64(obj.Object, paths.at(paths.there)...)
	if err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(wanted)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(there), Selector: selector},
	}, nil
}

func (s *scope) scalePaths() *scalePaths { return s.version.scale }

// at splits a path into its fields.
func (p *scalePaths) at(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

func (p *scalePaths) replicas(obj *unstructured.Unstructured) (int64, bool) {
	n, found, err := unstructured.NestedInt64(obj.Object, p.at(p.wanted)...)
	return n, found && err == nil
}

// labels returns the label selector of the counted pods as text.
func (p *scalePaths) labels(obj *unstructured.Unstructured) (string, error) {
	if p.selector == "" {
		return "", nil
	}
	found, _, err := unstructured.NestedFieldNoCopy(obj.Object, p.at(p.selector)...)
	if err != nil {
		return "", err
	}
	switch selector := found.(type) {
	case string:
		return selector, nil
	case map[string]any:
		if obj.GetKind() == "ReplicationController" {
			set, _, err := unstructured.NestedStringMap(obj.Object, p.at(p.selector)...)
			return labels.SelectorFromSet(set).String(), err
		}
		typed := &metav1.LabelSelector{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, typed); err != nil {
			return "", err
		}
		parsed, err := metav1.LabelSelectorAsSelector(typed)
		if err != nil {
			return "", err
		}
		return parsed.String(), nil
	}
	return "", nil
}
