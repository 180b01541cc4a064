package process

import (
	"encoding/json"
	"log/slog"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
)

// stored adapts a body to [storage.Object].
type stored struct{ body *object.Body }

func (s stored) Identity() storage.Identity {
	return storage.Identity{
		APIVersion: s.body.APIVersion, Kind: s.body.Kind,
		Namespace: s.body.Namespace, Name: s.body.Name, UID: s.body.UID,
	}
}

func (s stored) Lookup(path ...string) (any, bool) { return s.body.Lookup(path...) }

// shown returns an object as a log value that is built only if the line is printed. It
// hides Secrets.
func (p *Processor) shown(b *object.Body) slog.LogValuer {
	if p.Resource.Kind == "Secret" && p.Resource.Group == "" {
		return lazyText(func() string { return "(a secret)" })
	}
	return lazyJSON(b.Raw)
}

// shownDiff returns the diff as a log value. It hides Secrets.
func (v *view) shownDiff() slog.LogValuer {
	return lazyText(func() string {
		if v.Resource.Kind == "Secret" && v.Resource.Group == "" && v.Config.PlainSecrets {
			return "(of a secret)"
		}
		return v.forHandlers(v.cause).Diff.String()
	})
}

type lazyText func() string

func (l lazyText) LogValue() slog.Value { return slog.StringValue(l()) }

// lazyJSON is logged as a structured value. As a text, it would be quoted.
type lazyJSON func() []byte

func (l lazyJSON) LogValue() slog.Value { return slog.AnyValue(json.RawMessage(l())) }
