package storage_test

import (
	"strings"
	"testing"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func state(key string, former ...string) *storage.StatusState {
	return storage.NewStatusState(key, former, storage.DefaultProgress(), storage.DefaultBase())
}

const (
	annotationBase  = "kopf.zalando.org/last-handled-configuration"
	spec1, spec2    = `{"spec":{"a":1}}`, `{"spec":{"a":2}}`
	spec3           = `{"spec":{"a":3}}`
	digestOfSpec1   = "1613b96f"
	recordOfHandler = `{"purpose":"update","retries":1,"success":false,"failure":false}`
)

func TestOnePlaceHoldsTheState(t *testing.T) {
	t.Parallel()
	status := func(fields map[string]any) map[string]any { return map[string]any{"things": fields} }
	for name, test := range map[string]struct {
		annotation, record    string
		status                map[string]any
		inStatus, annotations string // the base that counts if the state is kept there
	}{
		"nothing":                 {},
		"annotations":             {annotation: spec1, inStatus: spec1, annotations: spec1},
		"the status":              {status: status(map[string]any{"last-handled-configuration": spec2}), inStatus: spec2, annotations: spec2},
		"a former key":            {status: map[string]any{"old": map[string]any{"last-handled-configuration": spec2}}, inStatus: spec2, annotations: spec2},
		"moved":                   {annotation: spec1, status: status(map[string]any{"last-handled-configuration": spec2, "moved": digestOfSpec1}), inStatus: spec2, annotations: spec2},
		"worked since the move":   {annotation: spec3, status: status(map[string]any{"last-handled-configuration": spec2, "moved": digestOfSpec1}), inStatus: spec3, annotations: spec3},
		"removed since the move":  {status: status(map[string]any{"last-handled-configuration": spec2, "moved": digestOfSpec1}), inStatus: spec2, annotations: spec2},
		"never moved":             {annotation: spec3, status: status(map[string]any{"last-handled-configuration": spec2}), inStatus: spec2, annotations: spec3},
		"records in the status":   {annotation: spec3, status: status(map[string]any{"progress": map[string]any{"x": map[string]any{}}}), annotations: spec3},
		"records in annotations":  {record: recordOfHandler, status: status(map[string]any{"last-handled-configuration": spec2}), inStatus: spec2, annotations: spec2},
		"records since the move":  {record: recordOfHandler, status: status(map[string]any{"last-handled-configuration": spec2, "moved": digestOfSpec1}), inStatus: spec2, annotations: spec2},
		"no records in the state": {annotation: spec3, status: status(map[string]any{"progress": map[string]any{}}), inStatus: spec3, annotations: spec3},
	} {
		annotations := map[string]any{}
		if test.annotation != "" {
			annotations[annotationBase] = test.annotation
		}
		if test.record != "" {
			annotations["kopf.zalando.org/x"] = test.record
		}
		o := storagetest.Body{"metadata": map[string]any{"uid": "u", "annotations": annotations}, "status": test.status}
		for inStatus, want := range map[bool]string{true: test.inStatus, false: test.annotations} {
			_, base := state("things", "old").Storages(inStatus)
			essence, found, err := base.Load(t.Context(), o)
			if err != nil || found != (want != "") {
				t.Errorf("%s, in the status %t: found %t, %v", name, inStatus, found, err)
				continue
			}
			if got, _ := storage.EncodeEssence(essence); found && strings.TrimSpace(got) != want {
				t.Errorf("%s, in the status %t: got %s, want %s", name, inStatus, got, want)
			}
		}
	}
}

func TestStateInTheStatusNeedsStoragesInAnnotations(t *testing.T) {
	t.Parallel()
	progress, base := storage.DefaultProgress(), storage.DefaultBase()
	for name, test := range map[string]struct {
		state *storage.StatusState
		valid bool
	}{
		"annotations":    {storage.NewStatusState("a-B_1", nil, progress, base), true},
		"another status": {storage.NewStatusState("x", nil, progress, storage.NewStatusBase("y")), false},
		"a dotted key":   {storage.NewStatusState("a.b", nil, progress, base), false},
		"a dotted former key": {
			storage.NewStatusState("x", []string{"a.b"}, progress, base), false,
		},
	} {
		p, _ := test.state.Storages(true)
		if err := p.(storage.Validator).Validate(); (err == nil) != test.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
