// Package named is package shared with names for all structs.
package named

// Limits are embedded.
type Limits struct {
	// Most is the upper limit.
	// +kubebuilder:validation:Maximum=100
	Most   int    `json:"most,omitempty"`
	Window Window `json:"window,omitempty"`
}

type Window struct {
	// +kubebuilder:default=5
	Minutes int `json:"minutes,omitempty"`
}
