package vectors_test

import (
	"strings"
	"testing"

	"gopf.dev/gopf/storage"
)

// progressOf makes the storage that a case describes by Kopf's parameters.
func progressOf(t *testing.T, config map[string]any) storage.Progress {
	t.Helper()
	annotations := storage.NewAnnotationProgress(text(config, "prefix", storage.DefaultPrefix))
	annotations.V1 = flag(config, "v1", annotations.V1)
	annotations.Verbose = flag(config, "verbose", annotations.Verbose)
	annotations.TouchKey = text(config, "touch_key", annotations.TouchKey)
	status := storage.NewStatusProgress(text(config, "name", storage.DefaultName))
	status.Field = path(config, "field", status.Field)
	status.TouchField = path(config, "touch_field", status.TouchField)
	switch config["type"] {
	case "annotations":
		return annotations
	case "status":
		return status
	case "smart":
		return storage.SmartProgress(annotations, status)
	case "multi":
		var storages []storage.Progress
		for _, part := range nested(config) {
			storages = append(storages, progressOf(t, part))
		}
		return storage.MultiProgress(storages...)
	}
	t.Fatalf("unknown storage %v", config)
	return nil
}

// baseOf makes the storage that a case describes by Kopf's parameters.
func baseOf(t *testing.T, config map[string]any) storage.Base {
	t.Helper()
	var ignored [][]string
	list, _ := config["ignored_fields"].([]any)
	for _, field := range list {
		ignored = append(ignored, kopfPath(field))
	}
	switch config["type"] {
	case "annotations":
		s := storage.NewAnnotationBase(text(config, "prefix", storage.DefaultPrefix))
		s.Key = text(config, "key", s.Key)
		s.V1 = flag(config, "v1", s.V1)
		s.Ignored = ignored
		return s
	case "status":
		s := storage.NewStatusBase(text(config, "name", storage.DefaultName))
		s.Field = path(config, "field", s.Field)
		s.Ignored = ignored
		return s
	case "multi":
		var storages []storage.Base
		for _, part := range nested(config) {
			storages = append(storages, baseOf(t, part))
		}
		return storage.MultiBase(storages...)
	}
	t.Fatalf("unknown storage %v", config)
	return nil
}

func text(config map[string]any, key, otherwise string) string {
	if value, ok := config[key].(string); ok {
		return value
	}
	return otherwise
}

func flag(config map[string]any, key string, otherwise bool) bool {
	if value, ok := config[key].(bool); ok {
		return value
	}
	return otherwise
}

// path reads a field, in which Kopf replaces the name if it is a string.
func path(config map[string]any, key string, otherwise []string) []string {
	switch value := config[key].(type) {
	case string:
		return kopfPath(strings.ReplaceAll(value, "{name}", text(config, "name", storage.DefaultName)))
	case []any:
		return kopfPath(value)
	}
	return otherwise
}

// nested finds the storages inside of a storage, described or just named.
func nested(config map[string]any) []map[string]any {
	var parts []map[string]any
	for key, value := range config {
		list, _ := value.([]any)
		if strings.HasSuffix(key, "field") || strings.HasSuffix(key, "fields") {
			continue
		}
		for _, item := range list {
			switch item := item.(type) {
			case map[string]any:
				parts = append(parts, item)
			case string:
				parts = append(parts, map[string]any{"type": item})
			}
		}
	}
	return parts
}
