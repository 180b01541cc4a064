package storage_test

import (
	"strings"
	"testing"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func objectOf(uid, kind string, annotations map[string]any) storagetest.Body {
	return storagetest.Body{"kind": kind, "metadata": map[string]any{
		"name": "x", "uid": uid, "annotations": annotations,
		"ownerReferences": []any{map[string]any{"kind": "Deployment"}},
	}}
}

func TestCopiesAreDetected(t *testing.T) {
	t.Parallel()
	const prefix = "my.example.com"
	compressing := storage.NewAnnotationBase(prefix)
	compressing.CompressAbove = 0
	for name, base := range map[string]*storage.AnnotationBase{"plain": storage.NewAnnotationBase(prefix), "compressed": compressing} {
		for _, kind := range []string{"Example", "ReplicaSet"} {
			p := storagetest.Patch{}
			if err := base.Save(t.Context(), objectOf("one", kind, nil), p, map[string]any{"spec": "x"}); err != nil {
				t.Fatal(err)
			}
			value, _ := p.Lookup("metadata", "annotations")
			stored := value.(map[string]any)
			if uid, copied := base.Copied(objectOf("one", kind, stored)); copied {
				t.Errorf("%s %s: the original was reported as a copy of %s", name, kind, uid)
			}
			twin := objectOf("two", kind, stored)
			if uid, copied := base.Copied(twin); !copied || uid != "one" {
				t.Errorf("%s %s: the copy was not detected: %q, %v, %v", name, kind, uid, copied, stored)
			}
			for key, value := range stored { // another tool may drop the line break
				stored[key] = strings.TrimSpace(value.(string))
			}
			if _, copied := base.Copied(twin); !copied {
				t.Errorf("%s %s: the copy without a line break was not detected", name, kind)
			}
			discard := storagetest.Patch{}
			base.Discard(twin, discard)
			if left := twin.Apply(discard); len(left["metadata"].(map[string]any)["annotations"].(map[string]any)) != 1 { // the marker
				t.Errorf("%s %s: left on the copy: %v", name, kind, left)
			}
			for key, value := range stored {
				if strings.Contains(key, "last-handled") {
					stored[key] = value.(string) + "x"
				}
			}
			if _, copied := base.Copied(twin); copied {
				t.Errorf("%s %s: a base of another operator was not trusted", name, kind)
			}
		}
	}
}

// Kubernetes copies a Deployment's annotations to its ReplicaSets. They do not apply to
// the ReplicaSets.
func TestAReplicaSetIsNotACopyOfItsDeployment(t *testing.T) {
	t.Parallel()
	base := storage.NewAnnotationBase(storage.DefaultPrefix)
	p := storagetest.Patch{}
	if err := base.Save(t.Context(), objectOf("one", "Deployment", nil), p, map[string]any{"spec": "x"}); err != nil {
		t.Fatal(err)
	}
	value, _ := p.Lookup("metadata", "annotations")
	if uid, copied := base.Copied(objectOf("two", "ReplicaSet", value.(map[string]any))); copied {
		t.Errorf("reported as a copy of %s", uid)
	}
}

func TestBindingsCountTowardsTheLimit(t *testing.T) {
	t.Parallel()
	base := storage.NewAnnotationBase(storage.DefaultPrefix)
	size := func(filler int) (int, storagetest.Patch) {
		o := objectOf("00000000-0000-0000-0000-000000000001", "Example", map[string]any{"f": strings.Repeat("x", filler)})
		p := storagetest.Patch{}
		if err := base.Save(t.Context(), o, p, map[string]any{"spec": "x"}); err != nil {
			t.Fatal(err)
		}
		total := 0
		for key, value := range o.Apply(p)["metadata"].(map[string]any)["annotations"].(map[string]any) {
			total += len(key) + len(value.(string))
		}
		return total, p
	}
	least, _ := size(0)
	for filler := base.CompressAbove - least - 2; filler < base.CompressAbove-least+3; filler++ {
		total, p := size(filler)
		_, plain := p.Lookup("metadata", "annotations", storage.DefaultPrefix+"/last-handled-configuration")
		if plain != (filler <= base.CompressAbove-least) || plain && total > base.CompressAbove {
			t.Errorf("filler %d: plain %v, %d bytes", filler, plain, total)
		}
	}
}
