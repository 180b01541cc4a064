package insight

import (
	"context"
	"fmt"
	"io"
	"strings"

	"gopf.dev/gopf/internal/suggest"
	"gopf.dev/gopf/internal/terminal"
)

// Retrying makes delayed handlers of an object due now.
type Retrying struct {
	Name     Name
	Handlers []string // ids; empty means all
	Again    bool     // also call handlers that have finished
	Out      io.Writer
}

// Retry makes delayed handlers due now. It fails if there are none.
func (op *Operator) Retry(ctx context.Context, r Retrying) error {
	return op.connected(ctx, func(ctx context.Context, s *session) error {
		p, served, body, err := s.get(ctx, r.Name)
		if err != nil {
			return err
		}
		for _, id := range r.Handlers {
			top, _, _ := strings.Cut(id, "/")
			if !p.Handlers.Has(id) && !p.Handlers.Has(top) {
				return fmt.Errorf("the operator has no change handler %q for %s%s", id, served.Info.Plural, suggest.DidYouMean(id, p.Handlers.IDs(), "%q"))
			}
		}
		name := served.Info.Plural + "/" + body.Name
		changed, err := p.Retry(ctx, body, r.Handlers, r.Again)
		if err != nil {
			return fmt.Errorf("retry %s: %w", name, advise(err, served.Info))
		}
		if len(changed) == 0 {
			if r.Again {
				return fmt.Errorf("%s: no handler is delayed, or has finished for the current change; see explain", name)
			}
			return fmt.Errorf("%s: no handler is delayed; see explain, or use --again for handlers that have finished", name)
		}
		fmt.Fprintf(r.Out, "%s: %s due now\n", name, terminal.Line(strings.Join(changed, ", ")))
		return nil
	})
}
