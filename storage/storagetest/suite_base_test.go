package storagetest_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

// memoryBase is a correct storage of bases, except for one flaw.
type memoryBase struct {
	flaw     string
	mu       sync.Mutex
	essences map[string]string
}

func (m *memoryBase) key(o storage.Object) string {
	if m.flaw == "by name" {
		return o.Identity().Name
	}
	return o.Identity().UID
}

func (m *memoryBase) Load(_ context.Context, o storage.Object) (map[string]any, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.essences[m.key(o)]
	if !ok {
		return nil, m.flaw == "makes up essences", nil
	}
	if m.flaw == "rounds numbers" {
		var essence map[string]any
		return essence, true, json.Unmarshal([]byte(text), &essence)
	}
	essence, found, err := storage.DecodeEssence(text)
	return essence, found && (len(essence) > 0 || m.flaw != "takes empty for absent"), err
}

func (m *memoryBase) Save(_ context.Context, o storage.Object, p storage.Patch, essence map[string]any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		return err
	}
	if _, ok := m.essences[m.key(o)]; !ok || m.flaw != "keeps the first" {
		m.essences[m.key(o)] = text[:min(len(text), 100_000)]
		if m.flaw != "cuts off" {
			m.essences[m.key(o)] = text
		}
	}
	switch m.flaw {
	case "leaves traces":
		p.Set(text, "metadata", "annotations", "trace")
	case "leaves traces in the status":
		p.Set(text, "status", "trace")
	case "spoils the essence":
		essence["spoilt"] = true
	}
	return nil
}

func (m *memoryBase) Clean(essence map[string]any) {
	if m.flaw == "cleans too much" {
		delete(essence, "metadata")
	}
}

// baseFlaws maps flaws to the tests that must fail.
var baseFlaws = map[string]string{
	"":                            "",
	"by name":                     "ObjectsAreKeptApart",
	"makes up essences":           "NothingIsKnownAtFirst",
	"rounds numbers":              "EveryValueIsKept",
	"takes empty for absent":      "EveryValueIsKept",
	"keeps the first":             "TheLastEssenceCounts",
	"cuts off":                    "ALargeEssenceIsStoredOrRejected",
	"leaves traces":               "SavedStateIsNotPartOfTheEssence",
	"leaves traces in the status": "SavedStateIsNotPartOfTheEssence",
	"spoils the essence":          "EveryValueIsKept",
	"cleans too much":             "SavedStateIsNotPartOfTheEssence",
}

// TestMemoryBase runs the suite on a storage with one flaw. Run directly, it has none.
func TestMemoryBase(t *testing.T) {
	storagetest.Base(t, &memoryBase{flaw: os.Getenv(flawVariable), essences: map[string]string{}})
}
