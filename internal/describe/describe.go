// Package describe has the description of an operator: its declarations as data. The
// hidden command "describe" of every operator prints it as JSON, and the command gopf
// derives manifests and permissions from it. The package is pure.
package describe

import (
	"encoding/json"
	"fmt"
)

// Version is the version of the format. Readers refuse other versions.
const Version = 1

// Operator is the description of an operator.
type Operator struct {
	Version  int       `json:"version"`
	Name     string    `json:"name,omitempty"` // see gopf.Identity; empty means none
	Types    []Type    `json:"types,omitempty"`
	Handlers []Handler `json:"handlers,omitempty"`
	Uses     []Use     `json:"uses,omitempty"`
	State    State     `json:"state"`
	Settings Settings  `json:"settings"`
	Scope    Scope     `json:"scope"`
}

// Resource names a resource of the API as far as the declaration does.
type Resource struct {
	Text    string `json:"text"` // as the operator logs it
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Plural  string `json:"plural,omitempty"` // empty means that the declaration does not name one resource
}

// Type is a Go type that is declared for a resource.
type Type struct {
	Resource Resource `json:"resource"`
	Package  string   `json:"package"` // import path; "main" means the program itself
	Name     string   `json:"name"`
	Status   bool     `json:"status,omitempty"` // it has a field "status"
	BuiltIn  bool     `json:"builtIn,omitempty"`
	Served   bool     `json:"served,omitempty"` // handlers are declared for it
}

// Handler is one declared handler.
type Handler struct {
	ID       string   `json:"id"`
	Family   string   `json:"family"` // see the constants
	Where    string   `json:"where"`  // file:line of the declaration
	Resource Resource `json:"resource"`
	Reasons  []string `json:"reasons,omitempty"`
	Field    string   `json:"field,omitempty"`
	Select   string   `json:"select,omitempty"` // label selector for the API server
	Filtered bool     `json:"filtered,omitempty"`
	Blocking bool     `json:"blocking,omitempty"` // deletions wait for it
	Owns     []Owned  `json:"owns,omitempty"`
	Review   *Review  `json:"review,omitempty"`

	Watches []Resource `json:"watches,omitempty"` // of a reconcile handler; see gopf.Watches
}

// Families of handlers.
const (
	Change    = "change"
	Event     = "event"
	Daemon    = "daemon"
	Timer     = "timer"
	Index     = "index"
	Validate  = "validate"
	Mutate    = "mutate"
	Reconcile = "reconcile"
	Startup   = "startup"
	Cleanup   = "cleanup"
	Login     = "login"
	Probe     = "probe"
)

// Owned is a kind of children of a reconcile handler.
type Owned struct {
	Resource Resource `json:"resource"`
	Anywhere bool     `json:"anywhere,omitempty"` // in other namespaces as well
}

// Review has the options of an admission handler.
type Review struct {
	Operations  []string `json:"operations,omitempty"` // empty means all
	Subresource string   `json:"subresource,omitempty"`
	Persistent  bool     `json:"persistent,omitempty"`
}

// Use is a declared use of the API by handlers; see gopf.May.
type Use struct {
	Resource    Resource `json:"resource"`
	Subresource string   `json:"subresource,omitempty"`
	Verbs       []string `json:"verbs"`
	Where       string   `json:"where"`
}

// State describes where the operator keeps its state on objects.
type State struct {
	Finalizer string   `json:"finalizer"`
	StatusKey string   `json:"statusKey,omitempty"` // empty means annotations
	Prefixes  []string `json:"prefixes,omitempty"`  // of annotations; empty means none or unknown
	Keys      []string `json:"keys,omitempty"`      // of the status; empty means none or unknown
	Unknown   bool     `json:"unknown,omitempty"`   // a storage does not report where it writes
}

// Settings are the settings that matter for manifests.
type Settings struct {
	Posting          bool   `json:"posting"`
	ScanningDisabled bool   `json:"scanningDisabled,omitempty"`
	Election         bool   `json:"election,omitempty"`
	ElectionName     string `json:"electionName,omitempty"`
	ElectionIn       string `json:"electionIn,omitempty"` // namespace of the Lease; empty means that of the pod
	Standalone       bool   `json:"standalone,omitempty"` // no peering
	Peering          string `json:"peering,omitempty"`
	PeeringMandatory bool   `json:"peeringMandatory,omitempty"`
	Health           string `json:"health,omitempty"`        // listen address
	Metrics          string `json:"metrics,omitempty"`       // listen address
	SecureMetrics    bool   `json:"secureMetrics,omitempty"` // the metrics need a token
	SecureInsight    bool   `json:"secureInsight,omitempty"` // the page needs a token
	ExitSeconds      int    `json:"exitSeconds,omitempty"`
	Webhook          string `json:"webhook,omitempty"` // server type; empty means none
	WebhookService   string `json:"webhookService,omitempty"`
	WebhookNamespace string `json:"webhookNamespace,omitempty"`
	WebhookSecret    string `json:"webhookSecret,omitempty"`
	WebhookPort      int    `json:"webhookPort,omitempty"` // of the container
	ServicePort      int    `json:"servicePort,omitempty"` // of the Service; 0 means 443
	Managed          string `json:"managed,omitempty"`     // name of the webhook configurations that the operator maintains
}

// Scope selects the served namespaces. No namespaces mean the whole cluster.
type Scope struct {
	Namespaces []string `json:"namespaces,omitempty"`
}

// Parse reads a description.
func Parse(text []byte) (*Operator, error) {
	var o Operator
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("read the description of the operator: %w", err)
	}
	if o.Version != Version {
		return nil, fmt.Errorf("the description of the operator has version %d, but this gopf reads version %d; use the same version of gopf and of the operator's module", o.Version, Version)
	}
	return &o, nil
}
