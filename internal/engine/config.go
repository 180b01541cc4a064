package engine

import (
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// Config describes an operator: its handlers, scope and settings.
type Config struct {
	Login      login.Source
	Handlers   handler.Set                       // of all families
	Daemons    map[*handler.Handler]*daemon.Spec // of the daemons and timers
	Indices    map[*handler.Handler]index.Target // of the indexing handlers
	Namespaces discovery.Namespaces              // empty means the whole cluster
	Log        *slog.Logger

	// ScanningDisabled turns off the watches of custom resource definitions and
	// namespaces. Namespaces must then be plain names; [Run] rejects patterns.
	ScanningDisabled bool

	Version string // of the framework
	Name    string // of the operator; "" means none. Reconcile handlers require one.

	// Wait limits the time that the operator waits at startup for an API server that is
	// not up yet. 0 means only a few attempts.
	Wait time.Duration

	Posting     recorder.Config
	Health      vitals.Config // version, inactivity and log are filled in
	Insight     string        // the listen address of the page; "" means none
	Peering     Peering
	Election    Election
	Admission   Admission
	Kube        kube.Options
	Stream      stream.Config // the resource and the namespace are filled in
	Process     process.Config
	ExitTimeout time.Duration // for handlers to return before their contexts are canceled
	Polling     time.Duration // between log lines about daemons that do not stop
	WorkerLimit int           // limits concurrent turns of each resource; 0 means no limit
	MaxWorkers  int           // limits concurrent calls of change and event handlers; 0 means no limit
	Backlog     int           // limits the bytes of queued events of each resource

	// Activities lists the ids of the handlers that belong to no resource. Counting
	// receives the observer of their calls if metrics are enabled. It may be nil.
	Activities []string
	Counting   func(execute.Observer)

	// Ready is called once, when the operator serves its resources. May be nil.
	Ready func()
	// Stopped is called once, when all handlers have stopped. The client still has
	// its credentials. May be nil.
	Stopped func()
	// Running is called once with the handle of the operator, before it serves
	// anything. May be nil.
	Running func(Handle)
	// ForHandlers returns the API that handlers use. nil means the handle itself.
	ForHandlers func(Handle) handler.API
}

// Handle controls a running operator. It is safe for concurrent use.
type Handle interface {
	// Wake calls delayed handlers of an object now. No ids means all handlers.
	// Unknown objects are ignored.
	Wake(of kind.Selector, namespace, name string, ids []string)
	// WakeOwner calls delayed handlers of the object with the uid now, if it can own
	// objects in the namespace. Unknown objects are ignored.
	WakeOwner(of kind.Selector, namespace, uid string)
	// Pause stops the handling of objects until Resume is called with the same who.
	// The operator works again when no pause is left. why is shown in logs and health.
	Pause(who, why string)
	Resume(who string)
	// RESTConfig returns a configuration for other clients of the cluster.
	RESTConfig() *rest.Config
	// Objects returns a client for objects of any kind.
	Objects() *apiclient.Objects
	// Post queues a Kubernetes event. It does not wait for the API server.
	Post(recorder.Event)
}
