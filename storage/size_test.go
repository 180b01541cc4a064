package storage_test

import (
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

const (
	plainKey      = "kopf.zalando.org/last-handled-configuration"
	compressedKey = plainKey + "-gz"
)

// sized returns an essence of about so many bytes that compresses well.
func sized(bytes int) map[string]any {
	return map[string]any{"data": strings.Repeat("0123456789abcdef", bytes/16)}
}

// noise returns an essence of so many bytes that does not compress.
func noise(bytes int) map[string]any {
	random := rand.NewChaCha8([32]byte{})
	data := make([]byte, bytes*3/4)
	_, _ = random.Read(data)
	return map[string]any{"data": base64.StdEncoding.EncodeToString(data)}
}

// applied returns the object after the patch. It fails if the annotations exceed the limit
// of the API server.
func applied(t *testing.T, body storagetest.Body, patch storagetest.Patch) map[string]any {
	t.Helper()
	value, _ := body.Apply(patch).Lookup("metadata", "annotations")
	annotations, _ := value.(map[string]any)
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value.(string))
	}
	if size > storage.AnnotationsLimit {
		t.Errorf("the API server would reject %d bytes of annotations", size)
	}
	return annotations
}

func TestLargeEssencesAreCompressed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body       storagetest.Body
		patch      storagetest.Patch
		essence    map[string]any
		compressed bool
	}{
		"small":                            {essence: sized(1000)},
		"large":                            {essence: sized(250 << 10), compressed: true},
		"large and hard to compress":       {essence: noise(240 << 10), compressed: true},
		"beside a large annotation":        {essence: sized(120 << 10), body: annotated("kubectl", strings.Repeat("x", 120<<10)), compressed: true},
		"beside a large new annotation":    {essence: sized(120 << 10), patch: annotating("new", strings.Repeat("x", 120<<10)), compressed: true},
		"the large annotation is replaced": {essence: sized(120 << 10), body: annotated("x", strings.Repeat("x", 120<<10)), patch: annotating("x", "small")},
		"the large annotation is removed":  {essence: sized(120 << 10), body: annotated("x", strings.Repeat("x", 120<<10)), patch: annotating("x", "null")},
		"the former ones do not count":     {essence: sized(120 << 10), body: annotated(plainKey, strings.Repeat("x", 120<<10), compressedKey, strings.Repeat("x", 100<<10))},
		"in the reserve":                   {essence: sized(1000), body: annotated("x", strings.Repeat("x", 240<<10)), compressed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch := tc.patch
			if patch == nil {
				patch = storagetest.Patch{}
			}
			s := storage.DefaultBase()
			if err := s.Save(t.Context(), tc.body, patch, tc.essence); err != nil {
				t.Fatal(err)
			}
			annotations := applied(t, tc.body, patch)
			if _, ok := annotations[compressedKey]; ok != tc.compressed {
				t.Errorf("compressed: got %v, want %v", ok, tc.compressed)
			}
			if _, ok := annotations[plainKey]; ok == tc.compressed {
				t.Errorf("plain: got %v, want %v", ok, !tc.compressed)
			}
			got, found, err := s.Load(t.Context(), tc.body.Apply(patch))
			if err != nil || !found || !cmp.Equal(tc.essence, got) {
				t.Errorf("the essence cannot be loaded: found %v, error %v", found, err)
			}
		})
	}
}

func TestEssencesThatDoNotFitAreErrors(t *testing.T) {
	t.Parallel()
	patch := storagetest.Patch{}
	body := annotated("x", strings.Repeat("x", 100<<10), plainKey, "{}")
	err := storage.DefaultBase().Save(t.Context(), body, patch, noise(300<<10))
	tooLarge, ok := errors.AsType[*storage.TooLargeError](err)
	if !ok {
		t.Fatalf("got %v, want a TooLargeError", err)
	}
	if tooLarge.Size < 300<<10 || tooLarge.Compressed < tooLarge.Room || tooLarge.Room != storage.AnnotationsLimit-(100<<10)-1 {
		t.Errorf("wrong numbers: %+v", tooLarge)
	}
	if len(patch) > 0 {
		t.Errorf("the patch is not empty")
	}
}

func TestOldKeysCountTowardsTheSize(t *testing.T) {
	t.Parallel()
	s := storage.NewAnnotationBase(strings.Repeat("p", 50))
	patch := storagetest.Patch{}
	if err := s.Save(t.Context(), storagetest.Body{}, patch, sized(150<<10)); err != nil {
		t.Fatal(err)
	}
	applied(t, storagetest.Body{}, patch)
}

func TestThePlainEssenceTakesPrecedence(t *testing.T) {
	t.Parallel()
	// Kopf does not know the compressed one, so the plain one is newer.
	s := storage.NewAnnotationBase(storage.DefaultPrefix)
	patch := storagetest.Patch{}
	if err := s.Save(t.Context(), storagetest.Body{}, patch, sized(250<<10)); err != nil {
		t.Fatal(err)
	}
	body := storagetest.Body{}.Apply(patch).Apply(annotating(plainKey, `{"by":"Kopf"}`))
	got, found, err := s.Load(t.Context(), body)
	if err != nil || !found || !cmp.Equal(map[string]any{"by": "Kopf"}, got) {
		t.Errorf("got %v, found %v, error %v", got, found, err)
	}
}

func TestBrokenCompressionIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "oops", "H4sIAAAAAAAC", base64.StdEncoding.EncodeToString([]byte("{}"))} {
		if got, found, err := storage.DefaultBase().Load(t.Context(), annotated(compressedKey, text)); err == nil || found {
			t.Errorf("%q: got %v, found %v, error %v", text, got, found, err)
		}
	}
}
