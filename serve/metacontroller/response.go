package metacontroller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"gopf.dev/gopf/internal/jsonvalue"
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
	if err := jsonvalue.Check(body, largestBody); err != nil {
		return fmt.Errorf("the response of the hook is too large: %w", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return fmt.Errorf("can't unmarshal webhookResponse (version: %s, type: %s): %w", version, kind, err)
	}
	if !strict {
		return checkItems(into)
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
	return checkItems(into)
}

// mostItems is the limit of the children or attachments in a response.
const mostItems = 5000

// checkItems refuses responses with null in a list, or with a list that is too long.
func checkItems(response any) error {
	switch r := response.(type) {
	case *CompositeHookResponse:
		return checkList("children", r.Children)
	case *DecoratorHookResponse:
		return checkList("attachments", r.Attachments)
	case *CustomizeHookResponse:
		if err := checkList("relatedResources", r.RelatedResources); err != nil {
			return err
		}
		return checkRules(r.RelatedResources)
	}
	return nil
}

func checkList[T any](field string, list []*T) error {
	if len(list) > mostItems {
		return fmt.Errorf("the response has %d %s, and the limit is %d", len(list), field, mostItems)
	}
	if slices.Contains(list, nil) {
		return errors.New("the response has null as a list item")
	}
	return nil
}
