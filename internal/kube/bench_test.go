package kube

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/object"
)

func bigPod(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":%q,"uid":"6a3f2f5e-0000-4000-8000-000000000001","resourceVersion":"12345",`+
		`"annotations":{"kopf.zalando.org/last-handled-configuration":%q},"managedFields":[{"manager":"x","fieldsV1":{"f:metadata":{"f:annotations":{%s}}}}]},`+
		`"spec":{"field":%q},"status":{"phase":"Running"}}`,
		name, strings.Repeat(`{\"spec\":1}`, 80), managedNames(), strings.Repeat("x", 1000))
}

func managedNames() string {
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf(`"f:a%d":{}`, i))
	}
	return strings.Join(names, ",")
}

// repeating is a reader that repeats a text forever.
type repeating struct {
	text string
	at   int
}

func (e *repeating) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func BenchmarkWatch(b *testing.B) {
	line := `{"type":"MODIFIED","object":` + bigPod("a") + "}\n"
	f := answers(func(req *http.Request) (*http.Response, error) {
		return respond(req, http.StatusOK, &repeating{text: line}), nil
	})
	client, _ := f.client(b)
	w, err := client.Watch(b.Context(), pods, "", WatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	items := strings.TrimSuffix(strings.Repeat(bigPod("a")+",", 100), ",")
	page := `{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[` + items + `]}`
	client, _ := answers(ok(page)).client(b)
	b.ReportAllocs()
	count := 0
	for b.Loop() {
		if _, err := client.List(b.Context(), pods, "", ListOptions{}, func(*object.Body) error { count++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count), "ns/object")
}

func BenchmarkPatch(b *testing.B) {
	pod := bigPod("a")
	client, _ := answers(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		return respond(req, http.StatusOK, strings.NewReader(pod)), nil
	}).client(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := patchIt(b.Context(), client); err != nil {
			b.Fatal(err)
		}
	}
}
