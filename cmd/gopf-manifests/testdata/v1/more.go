package v1

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

	Spec   ShownSpec   `json:"spec"`
	Status ShownStatus `json:"status,omitzero"`
}

type ShownSpec struct {
	// +kubebuilder:validation:MinLength=1
	Color string `json:"color"`
}

type ShownStatus struct {
	State string `json:"state,omitempty"`
}

// Scaled is a sample.
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:subresource:status
type Scaled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ScaledSpec   `json:"spec"`
	Status ScaledStatus `json:"status,omitzero"`
}

type ScaledSpec struct {
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
}

type ScaledStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
}

// Keyed is a sample.
type Keyed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KeyedSpec `json:"spec"`
}

type KeyedSpec struct {
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	Ports []KeyedPort `json:"ports,omitempty"`
	// +listType=set
	Tags []string `json:"tags,omitempty"`
	// +listType=atomic
	Steps []string `json:"steps,omitempty"`
}

type KeyedPort struct {
	Name string `json:"name"`
	// +kubebuilder:default=80
	Port int32 `json:"port"`
}

// Defaulted is a sample.
type Defaulted struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DefaultedSpec `json:"spec"`
}

type DefaultedSpec struct {
	// +kubebuilder:default="blue"
	Color string `json:"color,omitempty"`
	// +kubebuilder:default=true
	On bool `json:"on,omitempty"`
	// +kubebuilder:default={a,b}
	List []string `json:"list,omitempty"`
	// +kubebuilder:default={size: 3}
	Part DefaultedPart `json:"part,omitempty"`
}

type DefaultedPart struct {
	Size int `json:"size,omitempty"`
	// +kubebuilder:default=7
	Depth int `json:"depth,omitempty"`
}

// Enumerated is a sample.
type Enumerated struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EnumeratedSpec `json:"spec"`
}

type EnumeratedSpec struct {
	Mode  Mode   `json:"mode"`
	Modes []Mode `json:"modes,omitempty"`
	// +kubebuilder:validation:Enum=1;2;3
	Level int `json:"level,omitempty"`
}

// Mode is a named type with an enumeration.
// +kubebuilder:validation:Enum=Fast;Slow
type Mode string

// Numbered is a sample.
type Numbered struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NumberedSpec `json:"spec"`
}

type NumberedSpec struct {
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
}

// Measured is a sample.
type Measured struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MeasuredSpec `json:"spec"`
}

type MeasuredSpec struct {
	Memory resource.Quantity            `json:"memory"`
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
	Disk   *resource.Quantity           `json:"disk,omitempty"`
}

// Worded is a sample.
type Worded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WordedSpec `json:"spec"`
}

type WordedSpec struct {
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
}

// Nullable is a sample.
type Nullable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NullableSpec `json:"spec"`
}

type NullableSpec struct {
	// +nullable
	Text *string `json:"text"`
	// +nullable
	List []string `json:"list,omitempty"`
}

// Free is a sample.
type Free struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FreeSpec `json:"spec"`
}

type FreeSpec struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:XEmbeddedResource
	Template runtime.RawExtension `json:"template,omitempty"`
	Values   apiextensionsv1.JSON `json:"values,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Rest map[string]string `json:"rest,omitempty"`
}

// Chosen is a sample.
type Chosen struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ChosenSpec `json:"spec"`
}

type ChosenSpec struct {
	// +optional
	Soft string `json:"soft"`
	// +required
	Hard    string `json:"hard,omitempty"`
	Pointer *int   `json:"pointer,omitempty"`
	hidden  int
	Ignored string `json:"-"`
}

// Counted is a sample.
type Counted struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CountedSpec `json:"spec"`
}

type CountedSpec struct {
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=3
	Names []string `json:"names"`
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2
	Labels map[string]string `json:"labels,omitempty"`
}

// Boxed is a sample.
type Boxed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BoxedSpec `json:"spec"`
}

type BoxedSpec struct {
	Text   StringBox             `json:"text"`
	Number *IntBox               `json:"number,omitempty"`
	Many   []ModeBox             `json:"many,omitempty"`
	Pairs  map[string]StringPair `json:"pairs,omitempty"`
}

// Box has a value and a note.
type StringBox struct {
	// Value is the content.
	Value string `json:"value"`
	// +kubebuilder:validation:MaxLength=5
	Note string `json:"note,omitempty"`
}

// Box has a value and a note.
type IntBox struct {
	// Value is the content.
	Value int `json:"value"`
	// +kubebuilder:validation:MaxLength=5
	Note string `json:"note,omitempty"`
}

// Box has a value and a note.
type ModeBox struct {
	// Value is the content.
	Value Mode `json:"value"`
	// +kubebuilder:validation:MaxLength=5
	Note string `json:"note,omitempty"`
}

// Pair has two values.
// +kubebuilder:validation:XValidation:rule="size(self.key) > 0",message="the key is empty"
type StringPair struct {
	Key  string       `json:"key"`
	Then int32        `json:"then"`
	At   *metav1.Time `json:"at,omitempty"`
}

// Stacked is a sample.
type Stacked struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StackedSpec `json:"spec"`
}

type StackedSpec struct {
	Box       BoxBox `json:"box"`
	IntWindow `json:",inline"`
}

// Box has a value and a note.
type BoxBox struct {
	// Value is the content.
	Value IntBox `json:"value"`
	// +kubebuilder:validation:MaxLength=5
	Note string `json:"note,omitempty"`
}

// Window is embedded.
type IntWindow struct {
	From int64      `json:"from,omitempty"`
	Size WindowSize `json:"size,omitempty"`
}

type WindowSize struct {
	// +kubebuilder:validation:Minimum=1
	Minutes int64 `json:"minutes,omitempty"`
}

// Typed is a sample.
type Typed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TypedSpec `json:"spec"`
}

type TypedSpec struct {
	Name   DNSName                `json:"name"`
	Ports  []PortNumber           `json:"ports,omitempty"`
	ByName map[DNSName]PortNumber `json:"byName,omitempty"`
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

	Spec ComposedSpec `json:"spec"`
}

type ComposedSpec struct {
	Common `json:",inline"`
	*Extra `json:",inline"`
	Own    string `json:"own,omitempty"`
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

	Spec GuardedSpec `json:"spec"`
}

type GuardedSpec struct {
	// +kubebuilder:validation:XValidation:rule="self.all(x, x > 0)",message="all numbers must be positive"
	// +kubebuilder:validation:MaxItems=10
	Numbers []int `json:"numbers,omitempty"`
	// +kubebuilder:validation:XValidation:rule="self.min <= self.max",messageExpression="self.max < 0 ? 'max is negative' : 'min is too large'",fieldPath=".min",reason=FieldValueInvalid
	Range GuardedRange `json:"range"`
}

type GuardedRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Nested is a sample.
type Nested struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NestedSpec `json:"spec"`
}

type NestedSpec struct {
	Matrix [][]int32               `json:"matrix,omitempty"`
	Groups map[string][]string     `json:"groups,omitempty"`
	Rooms  []map[string]NestedRoom `json:"rooms,omitempty"`
}

type NestedRoom struct {
	Doors int `json:"doors"`
}

// Exclusive is a sample.
type Exclusive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ExclusiveSpec `json:"spec"`
}

type ExclusiveSpec struct {
	Source Source `json:"source"`
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

	Spec TimedSpec `json:"spec"`
}

type TimedSpec struct {
	At      metav1.Time       `json:"at"`
	Exactly *metav1.MicroTime `json:"exactly,omitempty"`
	After   metav1.Duration   `json:"after,omitempty"`
	Data    []byte            `json:"data,omitempty"`
}
