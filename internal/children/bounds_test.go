package children

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"runtime"
	"strings"
	"testing"
)

// No object has such a name. But the name of a child may come from its owner, and earlier versions
// stored it before the API server refused it.
func TestNamesThatNoObjectHasAreNotInInventories(t *testing.T) {
	real := Entry{Key: Key{"v1", "ConfigMap", "default", strings.Repeat("n", MaxName)}, UID: "0a0b0c0d"}
	inventory := &Inventory{Owner: "0a0b0c0d-0000", Entries: []Entry{
		{Key: Key{"v1", "ConfigMap", "default", strings.Repeat("n", MaxName+1)}},
		{Key: Key{"v1", "ConfigMap", strings.Repeat("s", MaxName+1), "a"}},
		{Key: Key{strings.Repeat("v", 2*MaxName), "ConfigMap", "default", "a"}},
		real,
	}}
	text, err := inventory.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text, inventory.Owner)
	if err != nil || len(got.Entries) != 1 || got.Entries[0] != real {
		t.Errorf("got %d entries, %v", len(got.Entries), err)
	}
}

func TestLongNamesAreCutInMessages(t *testing.T) {
	k := Key{Kind: "ConfigMap", Name: strings.Repeat("n", 100_000)}
	if n := len(k.String()); n > 300 {
		t.Errorf("the child is shown in %d bytes", n)
	}
	if err := k.Problem(); err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), "100000 bytes, more than the limit of 253") {
		t.Errorf("got %v", err)
	}
}

// A tenant can put any text into the inventory of its object.
func TestForgedInventoriesTakeLittleMemory(t *testing.T) {
	for _, forged := range []string{
		strings.Repeat(";", maxText),
		"1;0a0b0c0d;" + strings.Repeat(",", maxText-20) + ";0/a/AAAAAAAAAAAAAAAA",
		"1;0a0b0c0d;v1 Pod;" + strings.Repeat(",", maxText-20),
		"1;0a0b0c0d;v1 Pod;" + strings.Repeat("/", maxText-20),
	} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(forged)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text := compressed + base64.StdEncoding.EncodeToString(packed.Bytes())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(text, "0a0b0c0d-0000")
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.30s… was decoded", forged)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 10*maxText {
			t.Errorf("%.30s…: %d bytes were allocated", forged, took)
		}
	}
}
