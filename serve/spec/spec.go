// Package spec reads the file of an operator without Go code, and finds its mistakes. It
// runs nothing.
package spec

import (
	"time"
)

// The values of apiVersion and kind.
const (
	APIVersion = "gopf.dev/v1"
	Kind       = "Operator"
)

// Operator is the file.
type Operator struct {
	Pos  `json:"-"`
	keys `json:"-"`

	APIVersion string     `json:"apiVersion" doc:"gopf.dev/v1"`
	Kind       string     `json:"kind" doc:"Operator"`
	Metadata   Metadata   `json:"metadata" doc:"the name of the operator"`
	Resources  []Resource `json:"resources" doc:"the resources and their handlers"`
	Startup    []Activity `json:"startup" doc:"handlers that run once before the operator serves the cluster"`
	Cleanup    []Activity `json:"cleanup" doc:"handlers that run once when the operator stops"`
	Probes     []Activity `json:"probes" doc:"handlers whose results the liveness endpoint shows"`
	Webhook    *Webhook   `json:"webhook" doc:"the Service through which the API server reaches validate and mutate handlers; with --dev, it is not needed"`
	Settings   Node       `json:"settings" doc:"settings of the framework, by the names of gopf.Settings with a lower-case initial"`
}

// Webhook is the server for admission requests in a cluster.
type Webhook struct {
	Pos  `json:"-"`
	keys `json:"-"`

	Service   string `json:"service" doc:"name of the Service"`
	Namespace string `json:"namespace" doc:"namespace of the Service. Default: that of the operator"`
	Port      int    `json:"port" doc:"port of the Service. Default: 443"`
	Listen    int    `json:"listen" doc:"port of the operator that the Service targets. Default: 9443"`
	Secret    string `json:"secret" doc:"Secret with the certificate; the operator creates it. Default: the name of the Service plus -webhook"`
}

// Metadata names the operator.
type Metadata struct {
	Pos  `json:"-"`
	keys `json:"-"`

	Name string `json:"name" doc:"name of the operator. A domain name is its identity in the cluster; other names get the suffix .gopf.dev"`
}

// Resource is a resource with its handlers.
type Resource struct {
	Pos  `json:"-"`
	keys `json:"-"`

	Resource   string    `json:"resource" doc:"GROUP/VERSION/PLURAL, or VERSION/PLURAL in the core group"`
	Definition string    `json:"definition" doc:"file with the custom resource definition; --install applies it, and check uses its schema"`
	Where      Where     `json:"where" doc:"filter for all handlers of the resource"`
	Handlers   []Handler `json:"handlers" doc:"the handlers"`
}

// Where restricts handlers to some objects. All conditions must hold. A value of labels,
// annotations and fields is the expected value, a list of alternatives, null for no value,
// or a map with exists or not.
type Where struct {
	Pos  `json:"-"`
	keys `json:"-"`

	Labels      map[string]any `json:"labels" doc:"expected labels"`
	Annotations map[string]any `json:"annotations" doc:"expected annotations"`
	Fields      map[string]any `json:"fields" doc:"expected values by their paths, such as spec.size"`
	CEL         string         `json:"cel" doc:"expression over object, old, reason and review that must be true"`
}

// Call is the way in which a handler is called. Exactly one of Exec, HTTP, CEL and Template is set,
// except for handlers with children.
type Call struct {
	Exec      []string `json:"exec" doc:"a program and its arguments; a path with a slash is relative to the file"`
	Keep      bool     `json:"keep" doc:"start the program once and send it many calls, as JSON lines"`
	Processes int      `json:"processes" doc:"concurrent processes of the handler. Default: twice the number of cores; 1 with keep; 32 for daemons"`
	Env       []string `json:"env" doc:"variables of the operator that the program gets, as NAME, or NAME=VALUE"`
	Cluster   bool     `json:"cluster" doc:"give the program a kubeconfig with a short-lived token of the operator"`
	HTTP      *HTTP    `json:"http" doc:"a URL that receives a POST"`
	CEL       string   `json:"cel" doc:"an expression. For validate: whether the object is valid. Otherwise: the output"`
	Message   string   `json:"message" doc:"why cel denies the object, with ${…} expressions"`
	Template  Node     `json:"template" doc:"a map with ${…} expressions, or the file of one: the output"`

	CallTimeout time.Duration `json:"callTimeout" doc:"time limit of one call. Default: 5m for programs, 30s for http"`
	MaxOutput   int64         `json:"maxOutput" doc:"limit of the output in bytes. Default: 4 MiB"`
}

// HTTP is an HTTP hook.
type HTTP struct {
	Pos `json:"-"`

	URL         string  `json:"url" doc:"the URL"`
	TokenFile   string  `json:"tokenFile" doc:"file with a bearer token; it is read for each call"`
	TokenSecret *Secret `json:"tokenSecret" doc:"Secret with a bearer token; it is read for each call"`
	CAFile      string  `json:"caFile" doc:"file with the certificates of the authorities to trust"`
	CertFile    string  `json:"certFile" doc:"file with the client certificate"`
	KeyFile     string  `json:"keyFile" doc:"file with the key of the client certificate"`
}

// Secret names a key of a Secret.
type Secret struct {
	Pos `json:"-"`

	Namespace string `json:"namespace" doc:"namespace of the Secret"`
	Name      string `json:"name" doc:"name of the Secret"`
	Key       string `json:"key" doc:"key in the Secret. Default: token"`
}

// Handler is a handler of a resource.
type Handler struct {
	Pos  `json:"-"`
	keys `json:"-"`
	Call `json:",inline"`

	ID    string   `json:"id" doc:"id of the handler; it is stored on objects"`
	On    []string `json:"on" doc:"create, update, delete, resume, or event for every watch event"`
	Field string   `json:"field" doc:"path of the field whose changes are handled"`
	Where Where    `json:"where" doc:"filter for this handler"`

	Timer        time.Duration `json:"timer" doc:"interval of a timer"`
	Idle         time.Duration `json:"idle" doc:"the timer waits until the object has not changed for that long"`
	InitialDelay time.Duration `json:"initialDelay" doc:"delay of the first call of a timer or daemon"`
	Sharp        bool          `json:"sharp" doc:"measure the interval from start to start"`
	Daemon       bool          `json:"daemon" doc:"run the program as long as the object exists"`

	Validate       bool     `json:"validate" doc:"admission: validate objects"`
	Mutate         bool     `json:"mutate" doc:"admission: change objects before they are stored"`
	Operations     []string `json:"operations" doc:"CREATE, UPDATE, DELETE. Default: all"`
	IgnoreFailures bool     `json:"ignoreFailures" doc:"allow requests while the operator is unreachable"`

	Reconcile *Reconcile     `json:"reconcile" doc:"declare the children of the object"`
	Children  []Child        `json:"children" doc:"children by templates"`
	Status    map[string]any `json:"status" doc:"status of the object, with ${…} expressions over object and children"`

	Retries  *int           `json:"retries" doc:"number of calls for one change. Default: no limit"`
	Backoff  *time.Duration `json:"backoff" doc:"delay after an error. Default: 60s"`
	Timeout  time.Duration  `json:"timeout" doc:"total time for one change, with all attempts and delays. Default: no limit"`
	OnError  string         `json:"onError" doc:"temporary (default), permanent or ignored: how errors without an outcome count"`
	Optional bool           `json:"optional" doc:"do not block the deletion of objects"`
}

// Reconcile makes a handler level-triggered.
type Reconcile struct {
	Pos  `json:"-"`
	keys `json:"-"`

	Owns         []string      `json:"owns" doc:"resources of the children, such as apps/v1/deployments"`
	Every        time.Duration `json:"every" doc:"call at least that often. Default: only after changes"`
	NoConditions bool          `json:"noConditions" doc:"do not write status conditions"`
}

// Child is a child by a template.
type Child struct {
	Pos  `json:"-"`
	keys `json:"-"`

	ID          string   `json:"id" doc:"name of the child in expressions"`
	Template    Node     `json:"template" doc:"a map with ${…} expressions, or the file of one"`
	ReadyWhen   string   `json:"readyWhen" doc:"whether the child self is ready, as ${…}. Default: the rules of kstatus"`
	IncludeWhen string   `json:"includeWhen" doc:"whether the child is wanted, as ${…}. Default: always"`
	DependsOn   []string `json:"dependsOn" doc:"ids of children that must be ready first"`
	CreateOnly  bool     `json:"createOnly" doc:"never change the child after its creation"`
	Adopt       bool     `json:"adopt" doc:"take over an existing object of that name that no other object controls"`
	Recreate    bool     `json:"recreate" doc:"delete and create the child if a field is immutable"`
	Orphan      bool     `json:"orphan" doc:"keep the child when it is no longer wanted"`
}

// Activity is a handler of the operator itself.
type Activity struct {
	Pos  `json:"-"`
	keys `json:"-"`
	Call `json:",inline"`

	ID      string         `json:"id" doc:"id of the handler"`
	Retries *int           `json:"retries" doc:"number of calls. Default: no limit"`
	Backoff *time.Duration `json:"backoff" doc:"delay after an error. Default: 60s"`
	Timeout time.Duration  `json:"timeout" doc:"total time with all attempts and delays. Default: no limit"`
	OnError string         `json:"onError" doc:"temporary (default), permanent or ignored"`
}

// Family is the type of a handler.
type Family int

// The families of handlers.
const (
	None Family = iota // a mistake
	Change
	Event
	Timer
	Daemon
	Validate
	Mutate
	Reconciling
)

// Family returns the type of the handler. It is None if the file names none, or several.
func (h *Handler) Family() Family {
	var found []Family
	if len(h.On) > 0 {
		if len(h.On) == 1 && h.On[0] == "event" {
			found = append(found, Event)
		} else {
			found = append(found, Change)
		}
	} else if h.Field != "" {
		found = append(found, Change)
	}
	for f, given := range map[Family]bool{Timer: h.Timer > 0, Daemon: h.Daemon, Validate: h.Validate, Mutate: h.Mutate, Reconciling: h.Reconcile != nil} {
		if given {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return None
	}
	return found[0]
}

// Way is the way in which a handler is called.
type Way int

// The ways to call a handler.
const (
	NoWay Way = iota // none, or several
	Exec
	Kept
	Hook
	CEL
	Template
)

// Way returns how the handler is called. It is NoWay if the file names none, or several.
func (c *Call) Way() Way {
	var found []Way
	if len(c.Exec) > 0 && c.Keep {
		found = append(found, Kept)
	} else if len(c.Exec) > 0 {
		found = append(found, Exec)
	}
	if c.HTTP != nil {
		found = append(found, Hook)
	}
	if c.CEL != "" {
		found = append(found, CEL)
	}
	if c.Template.Present() {
		found = append(found, Template)
	}
	if len(found) != 1 {
		return NoWay
	}
	return found[0]
}

// Identity returns the name of the operator in the cluster.
func (o *Operator) Identity() string {
	for _, c := range o.Metadata.Name {
		if c == '.' {
			return o.Metadata.Name
		}
	}
	return o.Metadata.Name + ".gopf.dev"
}
