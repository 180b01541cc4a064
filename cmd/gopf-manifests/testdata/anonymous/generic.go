package anonymous

import meta "k8s.io/apimachinery/pkg/apis/meta/v1"

// Box has a value and a note.
type Box[T any] struct {
	// Value is the content.
	Value T `json:"value"`
	// +kubebuilder:validation:MaxLength=5
	Note string `json:"note,omitempty"`
}

// Pair has two values.
// +kubebuilder:validation:XValidation:rule="size(self.key) > 0",message="the key is empty"
type Pair[K comparable, V any] struct {
	Key  K          `json:"key"`
	Then V          `json:"then"`
	At   *meta.Time `json:"at,omitempty"`
}

// Window is embedded.
type Window[T int64 | int32] struct {
	From T `json:"from,omitempty"`
	Size struct {
		// +kubebuilder:validation:Minimum=1
		Minutes T `json:"minutes,omitempty"`
	} `json:"size,omitempty"`
}
