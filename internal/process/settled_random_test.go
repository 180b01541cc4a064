package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
)

// TestSettledObjectsNeedNoTurn compares the test on bytes with a full pass, on objects
// that were changed at random after they were handled.
func TestSettledObjectsNeedNoTurn(t *testing.T) {
	for name, set := range someStorages() {
		t.Run(name, func(t *testing.T) {
			settled, rnd := 0, rand.New(rand.NewPCG(1, 2))
			for n := range 3000 {
				var calls int
				k := newKind(newCluster(), nil, on(cause.Create, &calls), on(cause.Update, &calls))
				k.Handlers[0].ID, k.Handlers[1].ID = "a", "b"
				k.Handlers[0].Mandatory = n%2 == 0
				set(&k.Config)
				body := randomObject(t, rnd, k)
				if !k.unchanged(body) {
					continue
				}
				settled++
				m := &Memory{version: 1, handled: true}
				c, err := k.prepare(t.Context(), m, body, Occasion{}, &[]execute.Part{}, &cost{})
				if err != nil || calls != 0 || len(c.parts) > 0 || !c.notes.Empty() || c.due.Set || c.finalizer.Add || c.finalizer.Remove {
					t.Fatalf("settled, but: %v, %d calls, %+v\n%s", err, calls, c, body.Raw())
				}
			}
			if settled < 50 {
				t.Errorf("only %d were settled", settled)
			}
		})
	}
}

// someStorages returns configurations with different storages.
func someStorages() map[string]func(*Config) {
	return map[string]func(*Config){
		"default": func(*Config) {},
		"own prefix": func(c *Config) {
			c.Base, c.Progress = storage.NewAnnotationBase("my.op"), storage.NewAnnotationProgress("my.op")
		},
		"two prefixes": func(c *Config) {
			c.Base = storage.NewAnnotationBase("my.op")
			c.Progress = storage.SmartProgress(storage.NewAnnotationProgress("other.op"), storage.NewStatusProgress("mine"))
		},
		"status":               func(c *Config) { c.Progress = storage.NewStatusProgress("mine") },
		"state in the status":  func(c *Config) { c.Progress, c.Base = stateOf("mine").Storages(true) },
		"state in annotations": func(c *Config) { c.Progress, c.Base = stateOf("mine").Storages(false) },
	}
}

// TestResumeHandlersSeeTheSameWithoutAComparison compares turns at startup that recognize
// unchanged objects by their bytes with turns that decode and compare them.
func TestResumeHandlersSeeTheSameWithoutAComparison(t *testing.T) {
	for name, set := range someStorages() {
		t.Run(name, func(t *testing.T) {
			unchanged, rnd := 0, rand.New(rand.NewPCG(3, 4))
			for n := range 3000 {
				turn := func(body *object.Body, compare bool) (calls []call, c *change, k *Processor) {
					note := func(_ context.Context, r *handler.Request) error {
						calls = append(calls, call{r.Handler.ID, *r.Cause})
						return nil
					}
					reasons := func(reasons ...cause.Reason) map[cause.Reason]bool {
						of := map[cause.Reason]bool{}
						for _, r := range reasons {
							of[r] = true
						}
						return of
					}
					k = newKind(newCluster(), nil,
						&handler.Handler{ID: "a", Reasons: reasons(cause.Create, cause.Resume), Mandatory: n%2 == 0, Call: note},
						&handler.Handler{ID: "b", Reasons: reasons(cause.Update), Call: note})
					k.Config.Former = []string{"x"}[:n%3/2]
					set(&k.Config)
					if compare {
						k.bytesTestOnce.Do(func() {})
					}
					if body == nil {
						return nil, nil, k
					}
					c, err := k.prepare(t.Context(), &Memory{listed: true}, body, Occasion{}, &[]execute.Part{}, &cost{})
					if err != nil {
						t.Fatal(err)
					}
					return calls, c, k
				}
				_, _, k := turn(nil, false)
				body := randomObject(t, rnd, k)
				calls, c, _ := turn(body.Undecoded(), false)
				want, wanted, _ := turn(body.Undecoded(), true)
				if !reflect.DeepEqual(calls, want) {
					t.Fatalf("%+v was called, want %+v\n%s", calls, want, body.Raw())
				}
				if !reflect.DeepEqual(c.notes.Fields(), wanted.notes.Fields()) || c.due != wanted.due || c.finalizer.Add != wanted.finalizer.Add || c.finalizer.Remove != wanted.finalizer.Remove {
					t.Fatalf("%+v is written, want %+v\n%s", c, wanted, body.Raw())
				}
				if k.unchanged(body) {
					unchanged++
				}
			}
			if unchanged < 50 {
				t.Errorf("only %d were unchanged", unchanged)
			}
		})
	}
}

// call is a call of a handler.
type call struct {
	id    string
	cause cause.Cause
}

func stateOf(key string) *storage.StatusState {
	return storage.NewStatusState(key, nil, storage.NewAnnotationProgress("my.op"), storage.NewAnnotationBase("my.op"))
}

func randomObject(t *testing.T, rnd *rand.Rand, k *Processor) *object.Body {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	value := func() any {
		v, _ := jsonvalue.Decode([]byte(pick(`1`, `1.0`, `"1"`, `null`, `{}`, `[]`, `{"a":null}`, `{"b":1,"a":[1,{"c":"<&>"}]}`, `""`, `"ü\u2028"`, `1e3`, `true`, `-0.0`, `123456789012345678`,
			`9007199254740993`, `18446744073709551615`, `18446744073709552000`, `1e+21`)))
		return v
	}
	key := func() string {
		return pick("note", "x.io/y", "kopf.zalando.org/a", "kopf.zalando.org/touch-dummy", "my.op/a", "my.op/b.sub", "my.op/kopf-managed", "other.op/handling", "other.op/kopf-managed",
			"third.io/kopf-managed", "third.io/z", "dev.kopf.zalando.org/q", "kubectl.kubernetes.io/last-applied-configuration", "kopf.zalando.org/last-handled-configuration-gz",
			"my.op/last-handled-configuration", "kopf.zalando.org/last-handled-configuration")
	}
	annotations := map[string]any{}
	for range rnd.IntN(3) {
		annotations[key()] = pick("", "v", `{"purpose":"update","started":"2020-01-01T00:00:00.000000+00:00"}`, `{"spec":1}`)
	}
	metadata := map[string]any{"name": "n", "uid": "u", "resourceVersion": "1", "annotations": annotations}
	for range rnd.IntN(2) {
		metadata["labels"] = map[string]any{pick("a", "b"): "c"}
	}
	if rnd.IntN(2) == 0 {
		metadata["finalizers"] = []any{k.Config.Finalizer, "x"}[rnd.IntN(2):]
	}
	fields := map[string]any{"apiVersion": "v1", "kind": "X", "metadata": metadata}
	for range rnd.IntN(3) {
		fields[pick("spec", "data", "status", "extra")] = value()
	}
	if rnd.IntN(4) == 0 {
		fields["status"] = map[string]any{pick("mine", "kopf", "x"): map[string]any{"progress": map[string]any{pick("a", "b"): map[string]any{"purpose": "update", "started": "2020-01-01T00:00:00.000000+00:00"}}}}
	}
	body := func() *object.Body {
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		b, err := object.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	// The operator handles it.
	b := body()
	now := essence.Of(b, nil)
	essence.Clean(stored{b}, now, k.Config.Base, k.Config.Progress)
	text, err := storage.EncodeEssence(now)
	if err != nil {
		t.Fatal(err)
	}
	base, ok := k.Config.Base.(*storage.AnnotationBase)
	if !ok {
		base = storage.NewAnnotationBase("my.op")
		state := map[string]any{"last-handled-configuration": pick(text, text, `{"spec":1}`)}
		if rnd.IntN(2) == 0 {
			sum := sha256.Sum256([]byte(text))
			state["moved"] = pick(hex.EncodeToString(sum[:4]), "00000000")
		}
		if rnd.IntN(3) > 0 {
			fields["status"] = map[string]any{"mine": state}
		}
	}
	if ok || rnd.IntN(3) == 0 {
		annotations[base.Prefix+"/"+base.Key] = text + pick("", "\n")
	}
	if rnd.IntN(2) == 0 { // by this version of the framework, maybe for another object
		sum := sha256.Sum256([]byte(text))
		annotations[base.Bound()] = pick("u", "u", "u", "v") + "." + pick(hex.EncodeToString(sum[:4]), "00000000")
	}
	if rnd.IntN(2) == 0 && base.Prefix != storage.DefaultPrefix {
		annotations[base.Prefix+"/kopf-managed"] = "yes"
	}
	// Then it changes.
	for range rnd.IntN(3) {
		switch rnd.IntN(5) {
		case 0:
			fields[pick("spec", "data", "status", "extra")] = value()
		case 1:
			annotations[key()] = pick("", "v")
		case 2:
			delete(annotations, key())
		case 3:
			metadata["labels"] = map[string]any{pick("a", "b"): pick("c", "d")}
		case 4:
			metadata["generation"] = rnd.IntN(9)
			metadata["managedFields"] = []any{map[string]any{"manager": fmt.Sprint(rnd.IntN(9))}}
		}
	}
	return body()
}
