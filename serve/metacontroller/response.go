package metacontroller

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// CompositeHookResponse is the response of a sync or finalize hook of a CompositeController.
type CompositeHookResponse struct {
	Status             map[string]any               `json:"status"`
	Children           []*unstructured.Unstructured `json:"children"`
	ResyncAfterSeconds float64                      `json:"resyncAfterSeconds"`
	Finalized          bool                         `json:"finalized"`
}

// DecoratorHookResponse is the response of a sync or finalize hook of a DecoratorController.
type DecoratorHookResponse struct {
	Labels             map[string]*string           `json:"labels"`
	Annotations        map[string]*string           `json:"annotations"`
	Status             map[string]any               `json:"status"`
	Attachments        []*unstructured.Unstructured `json:"attachments"`
	ResyncAfterSeconds float64                      `json:"resyncAfterSeconds"`
	Finalized          bool                         `json:"finalized"`
}

// CustomizeHookResponse is the response of a customize hook.
type CustomizeHookResponse struct {
	RelatedResources []*Rule `json:"relatedResources"`
}

// Decode reads the body of a response. In strict mode, unknown and duplicate fields are
// errors. kind is the hook: sync, finalize or customize.
func Decode(body []byte, into any, kind, version string, strict bool) error {
	if kind == "finalize" {
		kind = "sync"
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return fmt.Errorf("can't unmarshal webhookResponse (version: %s, type: %s): %w", version, kind, err)
	}
	if !strict {
		return nullItems(into)
	}
	var shape any // does not check the contents of children and status
	switch into.(type) {
	case *CompositeHookResponse:
		shape = new(struct {
			Status             json.RawMessage `json:"status"`
			Children           json.RawMessage `json:"children"`
			ResyncAfterSeconds json.RawMessage `json:"resyncAfterSeconds"`
			Finalized          json.RawMessage `json:"finalized"`
		})
	case *DecoratorHookResponse:
		shape = new(struct {
			Labels             json.RawMessage `json:"labels"`
			Annotations        json.RawMessage `json:"annotations"`
			Status             json.RawMessage `json:"status"`
			Attachments        json.RawMessage `json:"attachments"`
			ResyncAfterSeconds json.RawMessage `json:"resyncAfterSeconds"`
			Finalized          json.RawMessage `json:"finalized"`
		})
	default:
		shape = new(CustomizeHookResponse)
	}
	problems, err := kjson.UnmarshalStrict(body, shape)
	if err = errors.Join(append(problems, err)...); err != nil {
		return fmt.Errorf("strict validation failed for %s webhookResponse (type: %s, mode: strict): %w", version, kind, err)
	}
	return nullItems(into)
}

// nullItems refuses responses with null in a list.
func nullItems(response any) error {
	has := false
	switch r := response.(type) {
	case *CompositeHookResponse:
		has = hasNull(r.Children)
	case *DecoratorHookResponse:
		has = hasNull(r.Attachments)
	case *CustomizeHookResponse:
		has = hasNull(r.RelatedResources)
	}
	if has {
		return errors.New("the response has null as a list item")
	}
	return nil
}

func hasNull[T any](list []*T) bool {
	for _, item := range list {
		if item == nil {
			return true
		}
	}
	return false
}
