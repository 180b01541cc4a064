package metacontroller

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Group and Version are those of Metacontroller's resources.
const (
	Group   = "metacontroller.k8s.io"
	Version = "v1alpha1"
)

// Spec is the specification of a CompositeController or a DecoratorController.
type Spec struct {
	ParentResource      *ParentResource  `json:"parentResource"` // composite
	ChildResources      []ChildResource  `json:"childResources"`
	GenerateSelector    bool             `json:"generateSelector"`
	Resources           []ParentResource `json:"resources"` // decorator
	Attachments         []ChildResource  `json:"attachments"`
	Hooks               *Hooks           `json:"hooks"`
	EndpointConfigs     []EndpointConfig `json:"endpointConfigs"`
	ResyncPeriodSeconds *int32           `json:"resyncPeriodSeconds"`
}

// ParentResource is a resource whose objects are parents.
type ParentResource struct {
	APIVersion         string                `json:"apiVersion"`
	Resource           string                `json:"resource"`
	LabelSelector      *metav1.LabelSelector `json:"labelSelector"`
	AnnotationSelector *AnnotationSelector   `json:"annotationSelector"`
	RevisionHistory    *struct {
		FieldPaths []string `json:"fieldPaths"`
	} `json:"revisionHistory"`
	IgnoreStatusChanges bool `json:"ignoreStatusChanges"`
}

// AnnotationSelector selects objects by annotations.
type AnnotationSelector struct {
	MatchAnnotations map[string]string                 `json:"matchAnnotations"`
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions"`
}

// ChildResource is a resource whose objects are children.
type ChildResource struct {
	APIVersion     string          `json:"apiVersion"`
	Resource       string          `json:"resource"`
	UpdateStrategy *UpdateStrategy `json:"updateStrategy"`
}

// UpdateStrategy is the way in which children are changed.
type UpdateStrategy struct {
	Method       string `json:"method"`
	StatusChecks struct {
		Conditions []ConditionCheck `json:"conditions"`
	} `json:"statusChecks"`
}

// ConditionCheck is a condition that a child must have before the next one is updated.
type ConditionCheck struct {
	Type   string  `json:"type"`
	Status *string `json:"status"`
	Reason *string `json:"reason"`
}

// Hooks are the hooks of a controller.
type Hooks struct {
	Sync      *Hook `json:"sync"`
	Finalize  *Hook `json:"finalize"`
	Customize *Hook `json:"customize"`
}

// Hook is one hook.
type Hook struct {
	Version string   `json:"version"`
	Webhook *Webhook `json:"webhook"`
}

// Webhook is the address of a hook and the settings of its connection.
type Webhook struct {
	URL     *string          `json:"url"`
	Timeout *metav1.Duration `json:"timeout"`
	Path    *string          `json:"path"`
	Service *struct {
		Name      string  `json:"name"`
		Namespace string  `json:"namespace"`
		Port      *int32  `json:"port"`
		Protocol  *string `json:"protocol"`
	} `json:"service"`
	Etag *struct {
		Enabled             *bool  `json:"enabled"`
		CacheTimeoutSeconds *int32 `json:"cacheTimeoutSeconds"`
	} `json:"etag"`
	ResponseUnMarshallMode *string `json:"responseUnMarshallMode"`
	Connection
}

// Address returns the URL of a webhook.
func (w *Webhook) Address() (string, error) {
	if w.URL != nil && *w.URL != "" {
		return *w.URL, nil
	}
	if w.Service == nil || w.Path == nil {
		return "", errors.New("invalid webhook config: must specify either a full 'url', or both 'service' and 'path'")
	}
	protocol, port := "http", int32(80)
	if w.Service.Protocol != nil {
		protocol = *w.Service.Protocol
	}
	if w.Service.Port != nil {
		port = *w.Service.Port
	}
	return protocol + "://" + w.Service.Name + "." + w.Service.Namespace + ":" + strconv.Itoa(int(port)) + *w.Path, nil
}

// strict reports whether a response with unknown fields is refused.
func (h *Hook) strict() bool {
	if mode := h.Webhook.ResponseUnMarshallMode; mode != nil && *mode != "" {
		return *mode == "strict"
	}
	return h.Version == V2
}

// convert converts JSON values to a type.
func convert(from, to any) error {
	text, err := jsonvalue.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// Requested returns a controller resource as it is in requests: with the defaults of its
// definition, an empty status, and without managedFields.
func Requested(controller *unstructured.Unstructured) map[string]any {
	c := controller.DeepCopy()
	c.SetManagedFields(nil)
	c.Object["status"] = map[string]any{}
	spec, _ := c.Object["spec"].(map[string]any)
	hooks, _ := spec["hooks"].(map[string]any)
	for _, hook := range hooks {
		if hook, ok := hook.(map[string]any); ok {
			setDefault(hook, "version", V1)
			webhook, _ := hook["webhook"].(map[string]any)
			connectionDefaults(webhook)
		}
	}
	configs, _ := spec["endpointConfigs"].([]any)
	for _, config := range configs {
		config, _ := config.(map[string]any)
		connectionDefaults(config)
	}
	for _, field := range []string{"childResources", "attachments"} {
		list, ok := spec[field].([]any)
		if ok && len(list) == 0 {
			delete(spec, field)
		}
		for _, child := range list {
			child, _ := child.(map[string]any)
			if strategy, ok := child["updateStrategy"].(map[string]any); ok && field == "childResources" {
				setDefault(strategy, "statusChecks", map[string]any{})
			}
		}
	}
	return c.Object
}

// connectionDefaults sets the names of keys in Secrets that were not given.
func connectionDefaults(c map[string]any) {
	if basic, ok := c["basicAuth"].(map[string]any); ok {
		setDefault(basic, "usernameKey", "username")
		setDefault(basic, "passwordKey", "password")
	}
	if auth, ok := c["authorization"].(map[string]any); ok {
		setDefault(auth, "type", "Bearer")
	}
	if tls, ok := c["clientTLS"].(map[string]any); ok {
		setDefault(tls, "certKey", "tls.crt")
		setDefault(tls, "privateKeyKey", "tls.key")
	}
	if ca, ok := c["caBundle"].(map[string]any); ok {
		for _, source := range []string{"secretRef", "configMapRef"} {
			if ref, ok := ca[source].(map[string]any); ok {
				setDefault(ref, "key", "ca.crt")
			}
		}
	}
}

func setDefault(m map[string]any, field string, value any) {
	if m[field] == nil {
		m[field] = value
	}
}

// matcher reports whether a parent is selected.
type matcher struct{ labels, annotations labels.Selector }

func (m matcher) matches(obj metav1.Object) bool {
	return m.labels.Matches(labels.Set(obj.GetLabels())) && m.annotations.Matches(labels.Set(obj.GetAnnotations()))
}

// matcher returns the selection of a parent resource.
func (r *ParentResource) matcher() (m matcher, err error) {
	m = matcher{labels.Everything(), labels.Everything()}
	if r.LabelSelector != nil {
		if m.labels, err = metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
			return m, err
		}
	}
	if a := r.AnnotationSelector; a != nil {
		m.annotations, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: a.MatchAnnotations, MatchExpressions: a.MatchExpressions})
		if err != nil {
			err = fmt.Errorf("can't convert annotation selector for parent resource %q in apiVersion %q: %w", r.Resource, r.APIVersion, err)
		}
	}
	return m, err
}
