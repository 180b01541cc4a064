package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

// memory is a correct storage of progress, except for one flaw.
type memory struct {
	flaw    string
	mu      sync.Mutex
	records map[string]map[string]storage.Record
	damaged map[string]bool // by uid and id
}

func (m *memory) key(o storage.Object) string {
	if m.flaw == "by name" {
		return o.Identity().Name
	}
	return o.Identity().UID
}

func (m *memory) id(id string) string {
	if m.flaw == "short ids" {
		return id[:min(len(id), 63)]
	}
	return id
}

func (m *memory) Load(_ context.Context, o storage.Object, ids []string) (map[string]storage.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[string]storage.Record)
	var damaged []string
	for _, id := range ids {
		if m.damaged[m.key(o)+m.id(id)] {
			damaged = append(damaged, id)
			continue
		}
		record, ok := m.records[m.key(o)][m.id(id)]
		if ok || m.flaw == "makes up records" {
			found[id] = record
		}
	}
	if err := (&storage.MalformedError{Where: "memory", IDs: damaged, Err: errors.New("damaged")}); len(damaged) > 0 {
		switch m.flaw {
		case "drops the readable":
			return nil, err
		case "names nothing":
			err.IDs = nil
		}
		return found, err
	}
	return found, nil
}

func (m *memory) Save(_ context.Context, o storage.Object, p storage.Patch, changed map[string]storage.Record, purge []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.key(o)
	for _, id := range slices.Concat(slices.Collect(maps.Keys(changed)), purge) {
		delete(m.damaged, key+m.id(id))
	}
	if m.records[key] == nil || m.flaw == "keeps only the last" {
		m.records[key] = make(map[string]storage.Record)
	}
	for id, record := range changed {
		if m.flaw == "forgets messages" {
			record.Message = nil
		}
		m.records[key][m.id(id)] = record
	}
	for _, id := range purge {
		if _, ok := changed[id]; m.flaw != "never purges" && (!ok || m.flaw != "changes win") {
			delete(m.records[key], m.id(id))
		}
		if m.flaw == "patches in vain" {
			p.Set(nil, "status", id)
		}
	}
	switch m.flaw {
	case "leaves traces":
		p.Set(fmt.Sprint(changed), "metadata", "annotations", "trace")
	case "spoils the object":
		if annotations, ok := o.Lookup("metadata", "annotations"); ok {
			annotations.(map[string]any)["spoilt"] = "yes"
		}
	case "clears the patch":
		p.Remove("status", "phase")
	}
	return nil
}

func (m *memory) Clean(essence map[string]any) {
	if m.flaw == "cleans too much" {
		delete(essence, "metadata")
	}
}

// flaws maps flaws to the tests that must fail.
var flaws = map[string]string{
	"":                    "",
	"by name":             "ObjectsAreKeptApart",
	"short ids":           "RecordsOfAllIdsAreKeptApart",
	"makes up records":    "NothingIsKnownAtFirst",
	"keeps only the last": "OnlyChangedRecordsAreReplaced",
	"forgets messages":    "EveryFieldIsKept",
	"never purges":        "PurgedRecordsAreGone",
	"changes win":         "PurgingTakesPrecedenceOverChanging",
	"patches in vain":     "PurgingUnknownIDsChangesNothing",
	"leaves traces":       "RecordsAreNotPartOfTheEssence",
	"spoils the object":   "EveryFieldIsKept",
	"clears the patch":    "RecordsCanBePurgedBeforeThePatchIsSent",
	"cleans too much":     "RecordsAreNotPartOfTheEssence",
	"drops the readable":  "OnlyDamagedRecordsAreMissing",
	"names nothing":       "OnlyDamagedRecordsAreMissing",
}

// flawVariable is the environment variable that selects the flaw in the child process.
const flawVariable = "GOPF_STORAGETEST_FLAW"

// TestMemory runs the suite on a storage with one flaw. Run directly, it has none.
func TestMemory(t *testing.T) {
	m := &memory{flaw: os.Getenv(flawVariable), records: map[string]map[string]storage.Record{}, damaged: map[string]bool{}}
	storagetest.Progress(t, m, storagetest.Damage(func(o storage.Object, id string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.damaged[m.key(o)+m.id(id)] = true
	}))
}

func TestTheSuiteFindsFlaws(t *testing.T) {
	t.Parallel()
	if os.Getenv(flawVariable) != "" {
		t.Skip("this process is about one flaw only")
	}
	for suite, flaws := range map[string]map[string]string{"TestMemory": flaws, "TestMemoryBase": baseFlaws} {
		for flaw, want := range flaws {
			t.Run(suite+" "+flaw, func(t *testing.T) {
				t.Parallel()
				run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+suite+"$")
				run.Env = append(os.Environ(), flawVariable+"="+flaw)
				output, err := run.CombinedOutput()
				failed := strings.Contains(string(output), "--- FAIL: "+suite+"/"+want+" ")
				if want == "" && err != nil || want != "" && !failed {
					t.Errorf("the suite did not fail in %q: %v\n%s", want, err, output)
				}
			})
		}
	}
}
