//go:build unix

package serve_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// BenchmarkBurst measures the memory of an operator whose program handles 1,000 objects that
// exist at its start. The operator is a process of its own.
func BenchmarkBurst(b *testing.B) {
	const objects = 1000
	for b.Loop() {
		c := gopftest.NewCluster(b, websites, deployments)
		for i := range objects {
			o := site("default")
			o.SetName(fmt.Sprint("w", i))
			c.Create(b, o)
		}
		server := httptest.NewServer(c.Handler())
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childServer+"="+server.URL, childNamespace+"=default")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		c.WaitList(b, websites, "default", func(list []*unstructured.Unstructured) bool {
			done := 0
			for _, o := range list {
				if deployed(o) {
					done++
				}
			}
			return done == objects
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		b.ReportMetric(float64(usage.Maxrss)/1024, "peak-MB")
		server.CloseClientConnections()
		server.Close()
	}
	b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
}
