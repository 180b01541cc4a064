package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/bench/widget"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// mould is an object as stored by the API server. It is the template for other objects.
type mould struct {
	Entries int             `json:"entries"` // of the payload
	Fresh   json.RawMessage `json:"fresh"`   // as it was created
	Handled json.RawMessage `json:"handled"` // as operators have left it
}

// mouldKind and mouldName are replaced in copies, together with the UID and the payload.
const (
	mouldKind = "widgets"
	mouldName = "o-template"
)

// payloadSeed is the seed of the payload of the mould.
const payloadSeed = 1 << 60

// MakeMould creates an object with the given number of entries. It calls handle, which
// must run an operator until handled returns true.
func (c *Cluster) MakeMould(ctx context.Context, entries int, handle func(ctx context.Context, handled func() bool) error) error {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": widget.GroupVersion.String(), "kind": widget.Kinds[mouldKind],
		"metadata": map[string]any{"name": mouldName, "namespace": "default", "labels": map[string]any{"app": "bench"}},
		"spec":     widget.Spec{Group: "group-0000", Payload: widget.Payload(entries, payloadSeed), Size: 1},
	})
	if err != nil {
		return err
	}
	target := kube.Target{Info: Info(mouldKind), Namespace: "default"}
	if _, err := c.api.Create(ctx, target, raw); err != nil {
		return err
	}
	m := &mould{Entries: entries}
	if m.Fresh, err = c.stored(ctx, mouldKind, mouldName); err != nil {
		return err
	}
	// Leave it as other operators would.
	target.Name, target.Subresource = mouldName, "status"
	observed := []byte(`{"status":{"observedGeneration":1,"create":{"message":"created","size":1}}}`)
	if _, err := c.api.Patch(ctx, target, types.MergePatchType, observed); err != nil {
		return err
	}
	target.Subresource = ""
	err = handle(ctx, func() bool {
		b, err := c.api.Get(ctx, target)
		if err != nil {
			return false
		}
		_, inStatus := b.Lookup("status", widget.StateKey)
		return inStatus || len(b.Annotations()) > 0
	})
	if err != nil {
		return err
	}
	if m.Handled, err = c.stored(ctx, mouldKind, mouldName); err != nil {
		return err
	}
	if err := c.api.Delete(ctx, target, kube.DeleteOptions{}); err != nil {
		return err
	}
	c.mould = m
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(mouldFile(c.folder), text, 0o600)
}

// Sizes returns the sizes of a new and of a handled object, in bytes of stored JSON.
func (c *Cluster) Sizes() (fresh, handled int) { return len(c.mould.Fresh), len(c.mould.Handled) }

func readMould(folder string) (*mould, error) {
	text, err := os.ReadFile(mouldFile(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := &mould{}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	return m, err
}

// cast returns a copy with a different name, UID and payload.
func (m *mould) cast(from []byte, plural string, number int) (raw []byte, err error) {
	old, err := payloadText(m.Entries, payloadSeed)
	if err != nil {
		return nil, err
	}
	payload, err := payloadText(m.Entries, uint64(number))
	if err != nil {
		return nil, err
	}
	body, err := object.Parse(from)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("group-%04d", number%1000)
	return []byte(strings.NewReplacer(
		old, payload,
		escaped(old), escaped(payload),
		"group-0000", group,
		mouldName, Name(number),
		body.UID, uid(plural, number),
		`"kind":"`+widget.Kinds[mouldKind]+`"`, `"kind":"`+widget.Kinds[plural]+`"`,
	).Replace(string(from))), nil
}

func payloadText(entries int, seed uint64) (string, error) {
	text, err := json.Marshal(widget.Payload(entries, seed))
	return string(text), err
}

// escaped returns JSON in the form of a string within JSON.
func escaped(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }

// Name returns the name of an object by its number.
func Name(number int) string { return fmt.Sprintf("o-%07d", number) }

func uid(plural string, number int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", crc32.ChecksumIEEE([]byte(plural)), number)
}

// Updated returns an object with another size, as the API server would store it.
func Updated(raw []byte) []byte {
	raw = bytes.Replace(raw, []byte(`"generation":1,`), []byte(`"generation":2,`), 1)
	return bytes.Replace(raw, []byte(`"size":1,"stamp"`), []byte(`"size":2,"stamp"`), 1)
}

// Deleting returns an object with a deletion timestamp.
func Deleting(raw []byte) []byte {
	return bytes.Replace(raw, []byte(`"generation":1,`), []byte(`"deletionGracePeriodSeconds":0,"deletionTimestamp":"2026-01-01T00:00:00Z","generation":2,`), 1)
}
