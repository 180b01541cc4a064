package storage_test

import (
	"testing"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func TestProgressStoragesConform(t *testing.T) {
	t.Parallel()
	verbose := storage.NewAnnotationProgress("my-op.example.com")
	verbose.Verbose = true
	current := storage.NewAnnotationProgress(storage.DefaultPrefix)
	current.V1 = false
	inStatus, _ := state("my-op").Storages(true)
	inAnnotations, _ := state("my-op").Storages(false)
	for name, s := range map[string]storage.Progress{
		"state in the status":      inStatus,
		"state in annotations":     inAnnotations,
		"default":                  storage.DefaultProgress(),
		"annotations":              storage.NewAnnotationProgress(storage.DefaultPrefix),
		"annotations without v1":   current,
		"annotations of another":   verbose,
		"annotations, long prefix": storage.NewAnnotationProgress("a-domain-that-leaves-no-room-for-names-of-version-one.example.com"),
		"status":                   storage.NewStatusProgress("my-op"),
		"moved":                    storage.MovedProgress(smart(newPrefix, newPrefix), storage.DefaultProgress()),
		"several":                  storage.MultiProgress(storage.NewStatusProgress("other"), storage.NewAnnotationProgress("my-op.example.com")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.Progress(t, s)
		})
	}
}

func TestBaseStoragesConform(t *testing.T) {
	t.Parallel()
	compressing := storage.NewAnnotationBase("my-op.example.com")
	compressing.CompressAbove = 0
	_, inStatus := state("my-op").Storages(true)
	_, inAnnotations := state("my-op").Storages(false)
	for name, s := range map[string]storage.Base{
		"state in the status":      inStatus,
		"state in annotations":     inAnnotations,
		"default":                  storage.DefaultBase(),
		"annotations of another":   storage.NewAnnotationBase("my-op.example.com"),
		"annotations, long prefix": storage.NewAnnotationBase("a-domain-that-leaves-no-room-for-names-of-version-one.example.com"),
		"compressed":               compressing,
		"status":                   storage.NewStatusBase("my-op"),
		"moved":                    storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(storage.DefaultPrefix)),
		"several":                  storage.MultiBase(storage.NewAnnotationBase("my-op.example.com"), storage.NewStatusBase("my-op")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.Base(t, s)
		})
	}
}
