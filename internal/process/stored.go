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

// rawJSON shows an object in logs, without cost if the line is not printed.
// Secrets stay secret.
func rawJSON(b *object.Body) slog.LogValuer { return lazyBody{b} }

type lazyBody struct{ body *object.Body }

func (l lazyBody) LogValue() slog.Value {
	if l.body.Kind == "Secret" {
		return slog.StringValue("(a secret)")
	}
	return slog.StringValue(string(l.body.Raw()))
}
