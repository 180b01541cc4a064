package insight

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

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
// url is the address of the endpoint, without a path.
func (op *Operator) History(ctx context.Context, n Name, url string, use func(*History) error) error {
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
		h := &History{Object: controller.NameOf(served.Info) + "/" + namespace + "/" + n.Name}
		if h.Steps, err = timeline(ctx, strings.TrimRight(url, "/")+page.Path+"objects/"+h.Object); err != nil {
			return fmt.Errorf("read the history of %s/%s: %w", served.Info.Plural, n.Name, err)
		}
		return use(h)
	})
}

// timeline reads the timeline in the description of an object.
func timeline(ctx context.Context, url string) ([]page.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w; start the operator with --insight, and reach its pod with kubectl port-forward", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHistory))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", strings.ToLower(response.Status), cutLine(string(body)))
	}
	var object struct {
		Timeline *[]page.Step `json:"timeline"`
	}
	if err := json.Unmarshal(body, &object); err != nil || object.Timeline == nil {
		return nil, fmt.Errorf("the response has no timeline; is this the insight address of an operator?")
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
