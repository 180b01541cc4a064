package process

import (
	"context"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
)

// secret reports whether the resource is Secrets and their values must be hidden.
func (p *Processor) secret() bool {
	return p.Resource.Kind == "Secret" && p.Resource.Group == "" && !p.Config.PlainSecrets
}

// secrets returns the [essence.Secrets] that hides the values of this Secret.
func (p *Processor) secrets(body *object.Body) essence.Secrets {
	return essence.Secrets{Key: p.Config.SecretKey, UID: body.UID}
}

// secretValues returns the fields of a Secret that contain its plain values.
func secretValues(body *object.Body) map[string]any {
	return body.Members(func(member string) bool { return member == "data" || member == "stringData" })
}

// forHandlers returns the cause as handlers, filters and logs see it. For a Secret, its
// digests are masked.
func (p *Processor) forHandlers(c *cause.Cause) *cause.Cause {
	if !p.secret() {
		return c
	}
	masked := *c
	masked.Old, masked.New = essence.Mask(c.Old, c.New)
	masked.Diff = nil
	if len(c.Diff) > 0 {
		masked.Diff = maskedDiff(masked.Old, masked.New)
	}
	return &masked
}

// maskedDiff returns the diff of two masked essences. old may be nil: the diff is then
// that of a creation.
func maskedDiff(old, new map[string]any) diff.Diff {
	if old == nil {
		return diff.Of(nil, new)
	}
	return diff.Of(old, new)
}

// hideBase replaces the plain values in the base of a Secret, as Kopf stores them, with
// digests. It calls no handler.
func (h *handling) hideBase(ctx context.Context, c *change) error {
	if _, err := h.saveBase(ctx, c, h.cause.New); err != nil {
		return err
	}
	var purge []string
	if h.stale() || h.note.Followed() {
		purge = []string{progress.HandlingID}
	}
	return h.saveProgress(ctx, c, nil, purge)
}
