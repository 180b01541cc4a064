// Package v1 has the types of package anonymous, with names for all structs.
// +groupName=example.com
package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gopf.dev/gopf/cmd/gopf-manifests/testdata/named"
)

// Plain is a sample.
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PlainSpec `json:"spec"`
}

type PlainSpec struct {
	// Who is a name.
	Who   string `json:"who"`
	Count int    `json:"count,omitempty"`
	On    *bool  `json:"on,omitempty"`
	Big   int64  `json:"big,omitempty"`
}

// Bounded is a sample.
type Bounded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BoundedSpec `json:"spec"`
}

type BoundedSpec struct {
	Box BoundedPart1 `json:"box"`
}

type BoundedPart1 struct {
	// Size in gigabytes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=10
	Size int `json:"size,omitempty"`
	// +kubebuilder:validation:Enum=a;b
	Mode string `json:"mode"`
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	// +kubebuilder:validation:MaxLength=8
	Name string `json:"name,omitempty"`
}

// Deep is a sample.
type Deep struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DeepSpec `json:"spec"`
}

type DeepSpec struct {
	One DeepPart3 `json:"one"`
}

type DeepPart1 struct {
	// Last is the last.
	Last string `json:"last"`
}

type DeepPart2 struct {
	Three DeepPart1 `json:"three"`
}

type DeepPart3 struct {
	Two DeepPart2 `json:"two,omitempty"`
}

// Listed is a sample.
type Listed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ListedSpec `json:"spec"`
}

type ListedSpec struct {
	// +kubebuilder:validation:MaxItems=3
	Items []ListedPart2 `json:"items,omitempty"`
}

type ListedPart1 struct {
	Value int32 `json:"value"`
}

type ListedPart2 struct {
	Key string        `json:"key"`
	Sub []ListedPart1 `json:"sub,omitempty"`
}

// Mapped is a sample.
type Mapped struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MappedSpec `json:"spec"`
}

type MappedSpec struct {
	Rooms map[string]MappedPart1 `json:"rooms,omitempty"`
	Texts map[string]string      `json:"texts,omitempty"`
}

type MappedPart1 struct {
	Doors int `json:"doors"`
}

// Pointed is a sample.
type Pointed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PointedSpec `json:"spec"`
}

type PointedSpec struct {
	Maybe *PointedPart2 `json:"maybe,omitempty"`
}

type PointedPart1 struct {
	Value string `json:"value"`
}

type PointedPart2 struct {
	Deep *PointedPart1 `json:"deep,omitempty"`
}

// Ruled is a sample.
type Ruled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RuledSpec `json:"spec"`
}

type RuledSpec struct {
	// +kubebuilder:validation:XValidation:rule="self.least <= self.most",message="least is more than most"
	Range RuledPart1 `json:"range"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="it cannot be changed"
	Fixed string `json:"fixed,omitempty"`
}

type RuledPart1 struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

// Known is a sample.
type Known struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KnownSpec `json:"spec"`
}

type KnownSpec struct {
	Selector metav1.LabelSelector `json:"selector,omitempty"`
	Port     intstr.IntOrString   `json:"port,omitempty"`
	Size     resource.Quantity    `json:"size,omitempty"`
	After    metav1.Duration      `json:"after,omitempty"`
	At       *metav1.Time         `json:"at,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Embedding is a sample.
type Embedding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EmbeddingSpec `json:"spec"`
}

type EmbeddingSpec struct {
	named.Limits `json:",inline"`
	Own          EmbeddingPart1 `json:"own"`
}

type EmbeddingPart1 struct {
	Value string `json:"value"`
}

// Loose is a sample.
type Loose struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LooseSpec `json:"spec"`
}

type LooseSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Any runtime.RawExtension `json:"any,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Part LoosePart1 `json:"part,omitempty"`
}

type LoosePart1 struct {
	Known string `json:"known,omitempty"`
}
