package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proc"
	"gopf.dev/gopf/bench/report"
	"gopf.dev/gopf/bench/widget"
)

// reviewers is the number of reviews at the same time.
const reviewers = 8

// reviews is B12: the harness sends reviews of updates, as the API server does.
func (b *bench) reviews(ctx context.Context, p plan, n int) error {
	certificates := filepath.Join(b.folder, "certificates")
	if err := certify(certificates); err != nil {
		return err
	}
	review, err := updateReview()
	if err != nil {
		return err
	}
	return b.on(ctx, gopfName, 0, small, func(c *cluster.Cluster) error {
		for _, name := range []string{gopfName, typedName} {
			if !slices.Contains(p.operators(b.programs), name) {
				continue
			}
			log.Printf("%s: reviews", name)
			port, err := freePort()
			if err != nil {
				return err
			}
			args := []string{"--port", strconv.Itoa(port)}
			if name == typedName {
				args = append(args, "--certificates", certificates)
			}
			running, err := b.programs[name].start(c.Kubeconfig(), "widgets", "validate", args...)
			if err != nil {
				return err
			}
			err = b.reviewed(ctx, running, name, fmt.Sprintf("https://127.0.0.1:%d/validate", port), review, n)
			running.stop()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// reviewed sends n reviews to a running program, and adds the results.
func (b *bench) reviewed(ctx context.Context, p *process, name, url string, review []byte, n int) error {
	// The harness has no other way to know the certificate of either program.
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	var err error
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
		if err = send(ctx, client, url, review); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("the first review: %w: %s", err, p.problem())
	}
	if err := sendAll(ctx, client, url, review, n/10, nil); err != nil { // warms up
		return err
	}
	before, err := p.quiet()
	if err != nil {
		return err
	}
	if err := proc.ResetPeak(p.pid()); err != nil {
		return err
	}
	stop, err := b.profile(p, "B12", name)
	if err != nil {
		return err
	}
	latencies := make([]int64, n)
	began := time.Now()
	if err := sendAll(ctx, client, url, review, n, latencies); err != nil {
		return err
	}
	took := time.Since(began)
	if err := stop(); err != nil {
		return err
	}
	after, err := p.quiet()
	if err != nil {
		return err
	}
	memory, err := p.settled()
	if err != nil {
		return err
	}
	b.results.Add(report.Row{ID: "B12", Program: name, Objects: n, Values: append([]report.Value{
		{Name: "rate", Is: float64(n) / took.Seconds(), Unit: "reviews/s"},
		{Name: "CPU per review", Is: float64((after - before).Microseconds()) / float64(n), Unit: "µs"},
		{Name: "peak", Is: mega(memory.Peak), Unit: "MB"},
		{Name: "settled", Is: mega(memory.RSS), Unit: "MB"},
	}, quantiles(latencies)...)})
	return nil
}

// sendAll sends n reviews. It stores their latencies, unless the slice is nil.
func sendAll(ctx context.Context, client *http.Client, url string, review []byte, n int, latencies []int64) error {
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var running sync.WaitGroup
	for range reviewers {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failure.Load() == nil; i = next.Add(1) - 1 {
				began := time.Now()
				if err := send(ctx, client, url, review); err != nil {
					failure.Store(&err)
				}
				if latencies != nil {
					latencies[i] = int64(time.Since(began))
				}
			}
		})
	}
	running.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// send sends one review, which must be allowed.
func send(ctx context.Context, client *http.Client, url string, review []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"allowed":true`)) {
		return fmt.Errorf("got %s: %.300s", resp.Status, text)
	}
	return nil
}

// updateReview returns a review of an update of an object of about 1.3 KB.
func updateReview() ([]byte, error) {
	object := func(size int64) map[string]any {
		return map[string]any{
			"apiVersion": widget.GroupVersion.String(), "kind": widget.Kinds["widgets"],
			"metadata": map[string]any{"name": "x", "namespace": "default", "uid": "u1", "resourceVersion": "12345", "generation": size, "labels": map[string]any{"app": "bench"}},
			"spec":     widget.Spec{Group: "group-0000", Payload: widget.Payload(small, 1), Size: size},
		}
	}
	kind := map[string]any{"group": widget.GroupVersion.Group, "version": widget.GroupVersion.Version, "kind": widget.Kinds["widgets"]}
	resource := map[string]any{"group": widget.GroupVersion.Group, "version": widget.GroupVersion.Version, "resource": "widgets"}
	return json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "UPDATE", "name": "x", "namespace": "default", "dryRun": false,
			"kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
			"userInfo": map[string]any{"username": "someone", "groups": []string{"system:authenticated", "developers"}},
			"object":   object(2), "oldObject": object(1), "options": map[string]any{"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
		},
	})
}

// certify writes a certificate for controller-runtime, which needs one in a folder.
func certify(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
