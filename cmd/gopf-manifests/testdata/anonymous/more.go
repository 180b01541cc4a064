package anonymous

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Shown is a sample.
// +kubebuilder:printcolumn:name=Color,type=string,JSONPath=.spec.color,priority=1
// +kubebuilder:resource:shortName=shw,categories=all;samples,singular=shownone
// +kubebuilder:subresource:status
type Shown struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:MinLength=1
		Color string `json:"color"`
	} `json:"spec"`
	Status struct {
		State string `json:"state,omitempty"`
	} `json:"status,omitzero"`
}

// Scaled is a sample.
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:subresource:status
type Scaled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:Minimum=0
		Replicas *int32 `json:"replicas,omitempty"`
	} `json:"spec"`
	Status struct {
		Replicas int32  `json:"replicas,omitempty"`
		Selector string `json:"selector,omitempty"`
	} `json:"status,omitzero"`
}

// Keyed is a sample.
type Keyed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +listType=map
		// +listMapKey=name
		// +listMapKey=port
		Ports []struct {
			Name string `json:"name"`
			// +kubebuilder:default=80
			Port int32 `json:"port"`
		} `json:"ports,omitempty"`
		// +listType=set
		Tags []string `json:"tags,omitempty"`
		// +listType=atomic
		Steps []string `json:"steps,omitempty"`
	} `json:"spec"`
}

// Defaulted is a sample.
type Defaulted struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:default="blue"
		Color string `json:"color,omitempty"`
		// +kubebuilder:default=true
		On bool `json:"on,omitempty"`
		// +kubebuilder:default={a,b}
		List []string `json:"list,omitempty"`
		// +kubebuilder:default={size: 3}
		Part struct {
			Size int `json:"size,omitempty"`
			// +kubebuilder:default=7
			Depth int `json:"depth,omitempty"`
		} `json:"part,omitempty"`
	} `json:"spec"`
}

// Enumerated is a sample.
type Enumerated struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Mode  Mode   `json:"mode"`
		Modes []Mode `json:"modes,omitempty"`
		// +kubebuilder:validation:Enum=1;2;3
		Level int `json:"level,omitempty"`
	} `json:"spec"`
}

// Mode is a named type with an enumeration.
// +kubebuilder:validation:Enum=Fast;Slow
type Mode string

// Numbered is a sample.
type Numbered struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:Minimum=0
		// +kubebuilder:validation:ExclusiveMinimum=true
		// +kubebuilder:validation:Maximum=100
		// +kubebuilder:validation:MultipleOf=5
		Percent int32 `json:"percent"`
		Big     int64 `json:"big,omitempty"`
		Small   uint8 `json:"small,omitempty"`
		// +kubebuilder:validation:XIntOrString
		// +kubebuilder:validation:Pattern=`^[0-9]+%?$`
		Limit intstr.IntOrString `json:"limit,omitempty"`
	} `json:"spec"`
}

// Measured is a sample.
type Measured struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Memory resource.Quantity            `json:"memory"`
		Limits map[string]resource.Quantity `json:"limits,omitempty"`
		Disk   *resource.Quantity           `json:"disk,omitempty"`
	} `json:"spec"`
}

// Worded is a sample.
type Worded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:Format=email
		Mail string `json:"mail,omitempty"`
		// +kubebuilder:validation:MinLength=2
		// +kubebuilder:validation:MaxLength=4
		Code string `json:"code"`
		// +kubebuilder:validation:Type=string
		// +kubebuilder:validation:Format=uuid
		ID string `json:"id,omitempty"`
		// +kubebuilder:example="Q1"
		// +kubebuilder:title="The quarter"
		Quarter string `json:"quarter,omitempty"`
	} `json:"spec"`
}

// Nullable is a sample.
type Nullable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +nullable
		Text *string `json:"text"`
		// +nullable
		List []string `json:"list,omitempty"`
	} `json:"spec"`
}

// Free is a sample.
type Free struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:pruning:PreserveUnknownFields
		// +kubebuilder:validation:XEmbeddedResource
		Template runtime.RawExtension `json:"template,omitempty"`
		Values   apiextensionsv1.JSON `json:"values,omitempty"`
		// +kubebuilder:pruning:PreserveUnknownFields
		Rest map[string]string `json:"rest,omitempty"`
	} `json:"spec"`
}

// Chosen is a sample.
type Chosen struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +optional
		Soft string `json:"soft"`
		// +required
		Hard    string `json:"hard,omitempty"`
		Pointer *int   `json:"pointer,omitempty"`
		hidden  int
		Ignored string `json:"-"`
	} `json:"spec"`
}

// Counted is a sample.
type Counted struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:MinItems=1
		// +kubebuilder:validation:MaxItems=2
		// +kubebuilder:validation:items:MaxLength=3
		Names []string `json:"names"`
		// +kubebuilder:validation:MinProperties=1
		// +kubebuilder:validation:MaxProperties=2
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"spec"`
}

// Boxed is a sample.
type Boxed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Text   Box[string]                    `json:"text"`
		Number *Box[int]                      `json:"number,omitempty"`
		Many   []Box[Mode]                    `json:"many,omitempty"`
		Pairs  map[string]Pair[string, int32] `json:"pairs,omitempty"`
	} `json:"spec"`
}

// Stacked is a sample.
type Stacked struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Box           Box[Box[int]] `json:"box"`
		Window[int64] `json:",inline"`
	} `json:"spec"`
}

// Typed is a sample.
type Typed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Name   DNSName                `json:"name"`
		Ports  []PortNumber           `json:"ports,omitempty"`
		ByName map[DNSName]PortNumber `json:"byName,omitempty"`
	} `json:"spec"`
}

// DNSName is a name of a host.
// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
// +kubebuilder:validation:MaxLength=63
type DNSName string

// PortNumber is the number of a port.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type PortNumber int32

// Composed is a sample.
type Composed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Common `json:",inline"`
		*Extra `json:",inline"`
		Own    string `json:"own,omitempty"`
	} `json:"spec"`
}

// Common is embedded in a spec.
type Common struct {
	// +kubebuilder:validation:Enum=Always;Never
	Policy string `json:"policy"`
}

// Extra is embedded as a pointer.
type Extra struct {
	// +kubebuilder:default=9
	Weight int `json:"weight,omitempty"`
}

// Guarded is a sample.
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() < 20",message="the name is too long"
type Guarded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		// +kubebuilder:validation:XValidation:rule="self.all(x, x > 0)",message="all numbers must be positive"
		// +kubebuilder:validation:MaxItems=10
		Numbers []int `json:"numbers,omitempty"`
		// +kubebuilder:validation:XValidation:rule="self.min <= self.max",messageExpression="self.max < 0 ? 'max is negative' : 'min is too large'",fieldPath=".min",reason=FieldValueInvalid
		Range struct {
			Min int `json:"min"`
			Max int `json:"max"`
		} `json:"range"`
	} `json:"spec"`
}

// Nested is a sample.
type Nested struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Matrix [][]int32           `json:"matrix,omitempty"`
		Groups map[string][]string `json:"groups,omitempty"`
		Rooms  []map[string]struct {
			Doors int `json:"doors"`
		} `json:"rooms,omitempty"`
	} `json:"spec"`
}

// Exclusive is a sample.
type Exclusive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Source Source `json:"source"`
	} `json:"spec"`
}

// Source is one of two.
// +kubebuilder:validation:ExactlyOneOf=file;url
type Source struct {
	File *string `json:"file,omitempty"`
	URL  *string `json:"url,omitempty"`
}

// Timed is a sample.
// +kubebuilder:resource:scope=Cluster
type Timed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		At      metav1.Time       `json:"at"`
		Exactly *metav1.MicroTime `json:"exactly,omitempty"`
		After   metav1.Duration   `json:"after,omitempty"`
		Data    []byte            `json:"data,omitempty"`
	} `json:"spec"`
}
