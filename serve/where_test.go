package serve_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve"
)

// Any user can create objects on which a filter fails, for example without a field.
func TestAFailingFilterIsLoggedWithoutAStack(t *testing.T) {
	for _, handler := range []string{"{id: h, on: [create], cel: 'null', where: {cel: \"object.spec.field == 'x'\"}}", "{id: h, on: [event], cel: 'null', where: {cel: \"object.spec.field == 'x'\"}}"} {
		dir := operator(t, "      - "+handler+"\n", nil)
		synctest.Test(t, func(t *testing.T) {
			op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
			if err != nil {
				t.Fatal(err)
			}
			c := gopftest.NewCluster(t, things)
			var lines bytes.Buffer
			stop := gopftest.Start(t, op, c, gopf.Log(slog.New(slog.NewTextHandler(&lines, nil))))
			c.Create(t, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "odd", "namespace": "default"}, "spec": map[string]any{"other": "x"},
			}})
			time.Sleep(10 * time.Second)
			stop()
			if log := lines.String(); !strings.Contains(log, "where.cel: expression") || strings.Contains(log, "goroutine") || strings.Contains(log, "stack=") {
				t.Errorf("%s: the log is\n%s", handler, log)
			}
		})
	}
}
