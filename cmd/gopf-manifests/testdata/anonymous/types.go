// Package anonymous has types whose fields have anonymous structs. Package v1 has the same
// types with names for all structs.
package anonymous

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gopf.dev/gopf/cmd/gopf-manifests/testdata/shared"
)

// Plain is a sample.
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// Who is a name.
		Who   string `json:"who"`
		Count int    `json:"count,omitempty"`
		On    *bool  `json:"on,omitempty"`
		Big   int64  `json:"big,omitempty"`
	} `json:"spec"`
}

// Bounded is a sample.
type Bounded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Box struct {
			// Size in gigabytes.
			// +kubebuilder:validation:Minimum=1
			// +kubebuilder:default=10
			Size int `json:"size,omitempty"`
			// +kubebuilder:validation:Enum=a;b
			Mode string `json:"mode"`
			// +kubebuilder:validation:Pattern=`^[a-z]+$`
			// +kubebuilder:validation:MaxLength=8
			Name string `json:"name,omitempty"`
		} `json:"box"`
	} `json:"spec"`
}

// Deep is a sample.
type Deep struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		One struct {
			Two struct {
				Three struct {
					// Last is the last.
					Last string `json:"last"`
				} `json:"three"`
			} `json:"two,omitempty"`
		} `json:"one"`
	} `json:"spec"`
}

// Listed is a sample.
type Listed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:MaxItems=3
		Items []struct {
			Key string `json:"key"`
			Sub []struct {
				Value int32 `json:"value"`
			} `json:"sub,omitempty"`
		} `json:"items,omitempty"`
	} `json:"spec"`
}

// Mapped is a sample.
type Mapped struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Rooms map[string]struct {
			Doors int `json:"doors"`
		} `json:"rooms,omitempty"`
		Texts map[string]string `json:"texts,omitempty"`
	} `json:"spec"`
}

// Pointed is a sample.
type Pointed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Maybe *struct {
			Deep *struct {
				Value string `json:"value"`
			} `json:"deep,omitempty"`
		} `json:"maybe,omitempty"`
	} `json:"spec"`
}

// Ruled is a sample.
type Ruled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:XValidation:rule="self.least <= self.most",message="least is more than most"
		Range struct {
			Least int `json:"least"`
			Most  int `json:"most"`
		} `json:"range"`
		// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="it cannot be changed"
		Fixed string `json:"fixed,omitempty"`
	} `json:"spec"`
}

// Known is a sample.
type Known struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Selector metav1.LabelSelector `json:"selector,omitempty"`
		Port     intstr.IntOrString   `json:"port,omitempty"`
		Size     resource.Quantity    `json:"size,omitempty"`
		After    metav1.Duration      `json:"after,omitempty"`
		At       *metav1.Time         `json:"at,omitempty"`
		// +listType=map
		// +listMapKey=type
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"spec"`
}

// Embedding is a sample.
type Embedding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		shared.Limits `json:",inline"`
		Own           struct {
			Value string `json:"value"`
		} `json:"own"`
	} `json:"spec"`
}

// Loose is a sample.
type Loose struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:pruning:PreserveUnknownFields
		// +kubebuilder:validation:Schemaless
		Any runtime.RawExtension `json:"any,omitempty"`
		// +kubebuilder:pruning:PreserveUnknownFields
		Part struct {
			Known string `json:"known,omitempty"`
		} `json:"part,omitempty"`
	} `json:"spec"`
}
