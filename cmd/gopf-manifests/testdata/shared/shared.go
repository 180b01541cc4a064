// Package shared has a struct that types of another package embed.
package shared

// Limits are embedded.
type Limits struct {
	// Most is the upper limit.
	// +kubebuilder:validation:Maximum=100
	Most   int `json:"most,omitempty"`
	Window struct {
		// +kubebuilder:default=5
		Minutes int `json:"minutes,omitempty"`
	} `json:"window,omitempty"`
}
