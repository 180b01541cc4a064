// Package page serves the web page of a running operator, and the data behind it as JSON:
// rates, latencies, queues, the known objects, and one object with its explanation, its
// timeline and its children. It only reads.
//
// Everything that the operator knows may be on the page, so it is for loopback addresses
// only, unless each request is authorized; see [CheckAddress]. Other sites in the user's browser cannot read it: requests with
// the name of another host, as after DNS rebinding, are refused.
package page

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/explain"
)

// Path is the prefix of all paths.
const Path = "/debug/gopf/"

// Source is a running operator. Its methods must be safe for concurrent use.
type Source interface {
	// About returns facts about the process.
	About() About
	// Objects returns known objects of the resource, and the number of all selected ones.
	// It returns [ErrUnknown] if the resource is not served.
	Objects(resource string, b controller.Browsing) (page []controller.Known, total int, err error)
	// Object reads and explains one object. It returns [ErrUnknown] if the resource is not
	// served.
	Object(ctx context.Context, resource, namespace, name string) (*Object, error)
}

// ErrUnknown means that the operator does not serve the resource.
var ErrUnknown = errors.New("the operator does not serve this resource")

// About has facts about the process.
type About struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"` // of the framework
	Resources []string `json:"resources"`
	Problems  []string `json:"problems,omitempty"` // handlers that cannot be served
	Idle      string   `json:"idle,omitempty"`     // why the operator handles nothing
}

// Object is one object with everything that the page shows.
type Object struct {
	Report   *explain.Report `json:"report"`
	Timeline []Step          `json:"timeline"`
	Children []Child         `json:"children"`
}

// Step is one entry of a timeline.
type Step struct {
	At      time.Time `json:"at"`
	Took    float64   `json:"took"` // seconds
	Step    string    `json:"step"`
	Handler string    `json:"handler,omitempty"`
	Outcome string    `json:"outcome,omitempty"`
	Text    string    `json:"text,omitempty"`
}

// Child is one child with its own children.
type Child struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Resource  string  `json:"resource,omitempty"` // if the operator serves it
	State     string  `json:"state"`
	Message   string  `json:"message,omitempty"`
	Children  []Child `json:"children,omitempty"`
}

// Page serves the page. It must run before it shows any activity.
type Page struct {
	// AnyHost allows requests under any name of this machine. It must be set before the page
	// is served, and only if each request needs a token: other sites do not have it.
	AnyHost bool

	metrics http.Handler
	log     *slog.Logger
	source  atomic.Pointer[Source] // nil during startup

	mu      sync.Mutex
	samples samples
	changed chan struct{} // closed when there is a new sample
}

// New returns a page. metrics serves the metrics of the operator.
func New(metrics http.Handler, log *slog.Logger) *Page {
	return &Page{metrics: metrics, log: log, changed: make(chan struct{})}
}

// Started sets the running operator.
func (p *Page) Started(s Source) { p.source.Store(&s) }

//go:embed assets
var assets embed.FS

// types are the content types of the embedded files.
var types = map[string]string{"index.html": "text/html; charset=utf-8", "page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

// policy forbids requests to other servers, inline code, and frames of other sites.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (p *Page) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if why := refusal(req, p.AnyHost); why != "" {
		fail(w, http.StatusForbidden, why)
		return
	}
	rest, ok := strings.CutPrefix(req.URL.Path, Path)
	if !ok {
		http.Redirect(w, req, Path, http.StatusFound)
		return
	}
	if rest == "" {
		rest = "index.html"
	}
	switch {
	case types[rest] != "":
		content, _ := assets.ReadFile("assets/" + rest)
		header.Set("Content-Type", types[rest])
		_, _ = w.Write(content) // the client may be gone
	case rest == "top":
		p.answer(w, func(s Source) (any, error) { return p.top(s, true), nil })
	case rest == "stream":
		p.stream(w, req)
	case rest == "objects":
		p.answer(w, func(s Source) (any, error) { return browse(s, req) })
	case strings.HasPrefix(rest, "objects/"):
		p.answer(w, func(s Source) (any, error) { return object(s, req, strings.TrimPrefix(rest, "objects/")) })
	default:
		fail(w, http.StatusNotFound, "not found")
	}
}

// answer sends a value as JSON.
func (p *Page) answer(w http.ResponseWriter, value func(Source) (any, error)) {
	source := p.source.Load()
	if source == nil {
		fail(w, http.StatusServiceUnavailable, "the operator is starting")
		return
	}
	v, err := value(*source)
	if err != nil {
		fail(w, codeOf(err), err.Error())
		return
	}
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

func fail(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // the client may be gone
}

// invalid is an error in a request.
type invalid string

func (e invalid) Error() string { return string(e) }

func codeOf(err error) int {
	_, bad := errors.AsType[invalid](err)
	switch {
	case bad:
		return http.StatusBadRequest
	case errors.Is(err, ErrUnknown), apierrors.IsNotFound(err):
		return http.StatusNotFound
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// Limits of one page of objects.
const (
	usualLimit = 50
	maxLimit   = 500
)

// Row is an object in a list.
type Row struct {
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	States    []string `json:"states,omitempty"`
}

// Listing is one page of objects.
type Listing struct {
	Resource string `json:"resource"`
	Total    int    `json:"total"` // of all pages
	Objects  []Row  `json:"objects"`
	Next     string `json:"next,omitempty"` // the parameter "after" of the next page
}

func browse(s Source, req *http.Request) (*Listing, error) {
	query := req.URL.Query()
	b := controller.Browsing{Search: query.Get("q"), State: query.Get("state"), After: query.Get("after"), Limit: usualLimit}
	switch b.State {
	case "", "retrying", "running", "paused":
	default:
		return nil, invalid("state must be retrying, running or paused")
	}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			return nil, invalid("limit must be a number from 1 to " + strconv.Itoa(maxLimit))
		}
		b.Limit = n
	}
	l := &Listing{Resource: query.Get("resource"), Objects: []Row{}}
	if resources := s.About().Resources; l.Resource == "" && len(resources) > 0 {
		l.Resource = resources[0]
	}
	found, total, err := s.Objects(l.Resource, b)
	if err != nil {
		return nil, err
	}
	l.Total = total
	for _, k := range found {
		row := Row{Namespace: k.Namespace, Name: k.Name}
		for _, state := range []struct {
			name string
			is   bool
		}{{"running", k.Running}, {"retrying", k.Retrying}, {"paused", k.Paused}} {
			if state.is {
				row.States = append(row.States, state.name)
			}
		}
		l.Objects = append(l.Objects, row)
	}
	if n := len(found); n == b.Limit {
		l.Next = found[n-1].Namespace + "/" + found[n-1].Name
	}
	return l, nil
}

// ClusterScope is the namespace of cluster-scoped objects in paths.
const ClusterScope = "_"

// object returns the object at RESOURCE/NAMESPACE/NAME.
func object(s Source, req *http.Request, path string) (*Object, error) {
	parts := strings.Split(path, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return nil, invalid("the path must be objects/RESOURCE/NAMESPACE/NAME; the namespace of cluster-scoped objects is " + ClusterScope)
	}
	if parts[1] == ClusterScope {
		parts[1] = ""
	}
	o, err := s.Object(req.Context(), parts[0], parts[1], parts[2])
	if err != nil {
		return nil, err
	}
	hide(o.Report)
	return o, nil
}

// hide removes the values of a Secret. Operators may be configured to store them in plain
// text.
func hide(r *explain.Report) {
	if r.Object.Kind != "Secret" || r.Object.APIVersion != "v1" {
		return
	}
	for i := range r.Changes {
		r.Changes[i].Old, r.Changes[i].New = nil, nil
	}
}
