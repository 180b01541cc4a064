package attacks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// networkPeer connects from another host than the API server.
func networkPeer() *net.Dialer {
	return &net.Dialer{Timeout: inTime, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
}

// dial opens a TLS connection to the webhook port.
func (s *scene) dial() (net.Conn, error) {
	raw, err := networkPeer().Dial("tcp", s.webhooks)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // a socket can always do that
	if err := conn.Handshake(); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// review is a review of the object, as JSON.
func (s *scene) review(object string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":"big","namespace":"` + s.attacker.Name + `",
		"kind":{"group":"attacks.gopf.dev","version":"v1","kind":"Target"},"resource":{"group":"attacks.gopf.dev","version":"v1","resource":"targets"},
		"userInfo":{"username":"x"},"object":` + object + `}}`
}

func object(spec string) string {
	return `{"apiVersion":"attacks.gopf.dev/v1","kind":"Target","metadata":{"name":"big","namespace":"x"},"spec":` + spec + `}`
}

// slowReviews opens connections that announce a review and send a byte now and then.
// The operator may close them.
func (s *scene) slowReviews(n int, limit time.Duration) []string {
	var running sync.WaitGroup
	end := time.Now().Add(limit)
	for range n {
		running.Go(func() {
			conn, err := s.dial()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n{")
			for time.Now().Before(end) {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
				time.Sleep(300 * time.Millisecond) // to be slow is the attack
			}
		})
	}
	running.Wait()
	return nil
}

// slowHeaders opens connections that never come to the end of the headers, or do not
// even begin a handshake.
func (s *scene) slowHeaders() []string {
	for i := range 1500 {
		conn, err := networkPeer().Dial("tcp", s.webhooks)
		if err != nil {
			continue
		}
		defer conn.Close()
		if i%2 == 0 {
			_, _ = conn.Write([]byte{22, 3, 1, 2, 0, 1}) // the beginning of a handshake
		}
	}
	time.Sleep(time.Duration(size(2, 3)) * time.Second) // the connections stay open
	return nil
}

// bigReviews sends reviews that are too big, and some that are just not.
func (s *scene) bigReviews() []string {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: networkPeer().DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	send := func(body string, want ...int) {
		resp, err := client.Post("https://"+s.webhooks+"/validate", "application/json", strings.NewReader(body))
		if err != nil {
			return // it may be cut off
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body) // it may be cut off
		got := resp.StatusCode
		if strings.Contains(string(text), `"allowed":false`) {
			got = http.StatusForbidden
		}
		if !slices.Contains(want, got) {
			s.Errorf("a big review of %d bytes got %d %.200s", len(body), resp.StatusCode, text)
		}
	}
	huge := s.review(object(`{"x":"` + strings.Repeat("x", 7_800_000) + `"}`))
	dense := s.review(object(`{"x":` + wide(480_000) + `}`))
	allowed := s.review(object(`{"x":` + wide(50_000) + `,"y":"` + strings.Repeat("x", 3_000_000) + `"}`))
	var running sync.WaitGroup
	for i := range 32 {
		running.Go(func() { send(huge, http.StatusForbidden, http.StatusServiceUnavailable) })
		running.Go(func() { send(dense, http.StatusForbidden, http.StatusServiceUnavailable) })
		if i%4 == 0 {
			running.Go(func() { send(allowed, http.StatusOK, http.StatusServiceUnavailable) })
		}
	}
	running.Wait()
	return nil
}

// changedReviews sends reviews of updates whose objects have no key in common. Their
// differences take more memory than the objects.
func (s *scene) changedReviews() []string {
	client := peer(12 * time.Second) // long enough to wait for its own share
	defer client.CloseIdleConnections()
	var bodies []string
	for _, n := range []int{3_000, 18_000, 60_000, 130_000} {
		update := strings.Replace(s.review(object(members("b", n))), `"CREATE"`, `"UPDATE"`, 1)
		bodies = append(bodies, strings.Replace(update, `"object":`, `"oldObject":`+object(members("a", n))+`,"object":`, 1))
	}
	end := time.Now().Add(time.Duration(size(12, 30)) * time.Second)
	var running sync.WaitGroup
	for i := range 60 {
		running.Go(func() {
			for time.Now().Before(end) {
				resp, err := client.Post("https://"+s.webhooks+"/validate", "application/json", strings.NewReader(bodies[i%len(bodies)]))
				if err != nil {
					continue // it may be cut off
				}
				_, _ = io.Copy(io.Discard, resp.Body) // it may be cut off
				resp.Body.Close()
			}
		})
	}
	running.Wait()
	return nil
}

// peer returns a client with an address that is not that of the API server. Connections of one
// address share its limits, so one of the API server might be closed.
func peer(timeout time.Duration) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: 40, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// members returns a JSON object with n members.
func members(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%s%x":0`, prefix, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// noise sends handshakes of garbage, requests for paths that do not exist, and reviews
// of garbage.
func (s *scene) noise() []string {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: networkPeer().DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 4}}
	lines := strings.Count(s.op.Log.String(), "\n")
	all(1000, func(i int) {
		switch i % 4 {
		case 0:
			if conn, err := networkPeer().Dial("tcp", s.webhooks); err == nil {
				_, _ = conn.Write(bytes.Repeat([]byte("garbage\x00\x1b[31m"), 100))
				conn.Close()
			}
			return
		case 1:
			s.request(client, fmt.Sprintf("/%d/%s", i, strings.Repeat("x", 5000)), "{}")
		case 2:
			s.request(client, "/validate", strings.Repeat("[", 100_000))
		case 3:
			s.request(client, "/validate", s.review(`{"metadata":{"name":"\u001b[31m\nforged"},"spec":1e400}`))
		}
	})
	if n := strings.Count(s.op.Log.String(), "\n") - lines; n > 500 {
		s.Errorf("1000 bad requests made %d lines in the log", n)
	}
	return nil
}

func (s *scene) request(client *http.Client, path, body string) {
	ctx, cancel := context.WithTimeout(context.Background(), inTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+s.webhooks+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		return // it may be cut off
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // nothing depends on it
	if resp.StatusCode == http.StatusOK && !strings.Contains(body, "1e400") {
		s.Errorf("%.40s was answered with 200", path)
	}
}
