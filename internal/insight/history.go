package insight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/page"
	"gopf.dev/gopf/internal/terminal"
)

// maxHistory limits the size of a response with a timeline.
const maxHistory = 16 << 20

// History is the timeline of one object, as a running operator remembers it.
type History struct {
	Object string      `json:"object"` // RESOURCE/NAMESPACE/NAME
	Steps  []page.Step `json:"steps"`
}

// History reads the timeline of an object from the insight endpoint of the running operator.
// The address of the endpoint has no path.
func (op *Operator) History(ctx context.Context, n Name, e Endpoint, use func(*History) error) error {
	return op.connected(ctx, func(ctx context.Context, s *session) error {
		served, err := s.find(n.Kind)
		if err != nil {
			return err
		}
		t := s.target(served, n)
		namespace := t.Namespace
		if namespace == "" {
			namespace = page.ClusterScope
		}
		client, err := e.client(func() (*rest.Config, error) { return s.config, nil })
		if err != nil {
			return err
		}
		h := &History{Object: controller.NameOf(served.Info) + "/" + namespace + "/" + n.Name}
		if h.Steps, err = timeline(ctx, client, strings.TrimRight(e.URL, "/")+page.Path+"objects/"+h.Object); err != nil {
			return fmt.Errorf("read the history of %s/%s: %w", served.Info.Plural, n.Name, err)
		}
		return use(h)
	})
}

// timeline reads the timeline in the description of an object.
func timeline(ctx context.Context, client *http.Client, url string) ([]page.Step, error) {
	var object struct {
		Timeline *[]page.Step `json:"timeline"`
	}
	err := fetch(ctx, client, url, "start the operator with --insight, and reach its pod with kubectl port-forward", func(r io.Reader) error {
		if err := json.NewDecoder(io.LimitReader(r, maxHistory)).Decode(&object); err != nil || object.Timeline == nil {
			return errors.New("the response has no timeline; is this the insight address of an operator?")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return *object.Timeline, nil
}

// cutLine returns the first line of a text, and at most 200 characters of it. It escapes what
// would control a terminal.
func cutLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return terminal.Line(text)
}

// Write prints the timeline, the oldest step first.
func (h *History) Write(to io.Writer) error {
	if len(h.Steps) == 0 {
		_, err := fmt.Fprintf(to, "%s: the operator remembers no steps; it forgets old ones, and all of them when it stops\n", h.Object)
		return err
	}
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	for _, s := range h.Steps {
		took := ""
		if s.Step != "event" {
			took = time.Duration(s.Took * float64(time.Second)).Round(time.Microsecond).String()
		}
		what := terminal.Line(strings.TrimSpace(s.Handler + " " + s.Outcome))
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.At.Local().Format("2006-01-02 15:04:05.000"), s.Step, took, what, cutLine(s.Text))
	}
	return w.Flush()
}
