package process

import (
	"log/slog"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
)

// stored shows an object to storages.
type stored struct{ body *object.Body }

func (s stored) Identity() storage.Identity {
	return storage.Identity{
		APIVersion: s.body.APIVersion, Kind: s.body.Kind,
		Namespace: s.body.Namespace, Name: s.body.Name, UID: s.body.UID,
	}
}

func (s stored) Lookup(path ...string) (any, bool) { return s.body.Lookup(path...) }

// shown is an object in logs, without cost if the line is not printed. Secrets
// stay secret.
func (p *Processor) shown(b *object.Body) slog.LogValuer {
	if p.Resource.Kind == "Secret" && p.Resource.Group == "" {
		return lazyText(func() string { return "(a secret)" })
	}
	return lazyText(func() string { return string(b.Raw()) })
}

// shownDiff is a diff in logs. Secrets stay secret.
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
