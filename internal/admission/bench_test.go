package admission

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// benchVariable turns the test executable into a webhook server. Its cost can then be
// measured separately from that of the client.
const benchVariable = "GOPF_ADMISSION_BENCH_SERVER"

func TestMain(m *testing.M) {
	if which := os.Getenv(benchVariable); which != "" {
		beServer(which)
		return
	}
	os.Exit(m.Run())
}

// beServer serves until its input is closed.
func beServer(which string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	handlers := map[string]http.Handler{"bare": http.HandlerFunc(bare), "ours": benched(false), "reading": benched(true)}
	err := webhook.Local{}.Serve(ctx, handlers[which], func(c webhook.ClientConfig) {
		_ = json.NewEncoder(os.Stdout).Encode(c)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// bare is a minimal webhook: it decodes the review and responds.
func bare(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// benched returns a reviewer with one handler, which logs as operators do. It may read a
// field of the object, which requires decoding it.
func benched(reading bool) http.Handler {
	o := DefaultReviewerOptions()
	o.Log = slog.New(slog.NewJSONHandler(struct{ io.Writer }{io.Discard}, nil)) // unlike slog.DiscardHandler, this encodes the lines
	h := calling("check", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		if reading {
			_, _ = r.Body.Lookup("spec", "text")
		}
		return nil
	})
	v := NewReviewer(handler.Set{h}, o)
	v.Discovered([]kind.Info{examples})
	return v
}

// bigReview returns a review of an update of an object of typical size.
func bigReview() []byte {
	object := map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": "x", "namespace": "default", "uid": "u1", "resourceVersion": "12345",
			"labels":        map[string]any{"app": "x", "tier": "prod"},
			"managedFields": []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:x": map[string]any{}}}}}},
		"spec": map[string]any{"text": strings.Repeat("lorem ipsum ", 100), "list": slices.Repeat([]any{map[string]any{"name": "a", "value": 1}}, 40)},
	}
	return mustJSON(reviewOf("UPDATE", map[string]any{"object": object, "oldObject": object}))
}

// BenchmarkReviews compares the webhook server with one that only decodes the same
// reviews and responds: CPU time of the server per review, and the 99th percentile of
// the latency.
func BenchmarkReviews(b *testing.B) {
	cost := map[string]float64{}
	for _, which := range []string{"bare", "ours", "reading"} {
		b.Run(which, func(b *testing.B) {
			cost[which] = benchServer(b, which)
			b.ReportMetric(cost[which]/cost["bare"], "×bare")
		})
	}
}

func benchServer(b *testing.B, which string) (cpu float64) {
	server := exec.CommandContext(b.Context(), os.Args[0])
	server.Env = append(os.Environ(), benchVariable+"="+which)
	server.Stderr = os.Stderr
	stop, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	var c webhook.ClientConfig
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c)
	}
	if err != nil {
		b.Fatal(err)
	}
	took := askMany(b, c)
	stop.Close()
	if err := server.Wait(); err != nil {
		b.Fatal(err)
	}
	cpu = (server.ProcessState.UserTime() + server.ProcessState.SystemTime()).Seconds() / float64(len(took))
	slices.Sort(took)
	b.ReportMetric(cpu*1e6, "cpu-µs/review")
	b.ReportMetric(1/cpu, "reviews/s/core")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	return cpu
}

// askMany sends b.N reviews on one connection, as API servers do, a few at a time.
func askMany(b *testing.B, c webhook.ClientConfig) []time.Duration {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CABundle)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	review := bigReview()
	took := make([]time.Duration, b.N)
	var all sync.WaitGroup
	const workers = 4
	b.ResetTimer()
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < b.N; i += workers {
				began := time.Now()
				resp, err := client.Post(c.URL+"/check", "application/json", bytes.NewReader(review))
				if err != nil {
					b.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				took[i] = time.Since(began)
				if !bytes.Contains(text, []byte(`"allowed":true`)) {
					b.Errorf("got %d %s", resp.StatusCode, text)
					return
				}
			}
		})
	}
	all.Wait()
	return took
}
