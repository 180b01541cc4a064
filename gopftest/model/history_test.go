package model_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/gopftest"
)

// history records all actions, to print them if a check fails.
type history struct {
	cluster *gopftest.Cluster
	began   time.Time

	mu    sync.Mutex
	lines []line
}

type line struct {
	at   time.Time
	text string
}

func newHistory(c *gopftest.Cluster) *history { return &history{cluster: c, began: time.Now()} }

func (h *history) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line{time.Now(), fmt.Sprintf(format, args...)})
}

// String lists everything in order, including the requests.
func (h *history) String() string {
	h.mu.Lock()
	lines := slices.Clone(h.lines)
	h.mu.Unlock()
	for _, r := range h.cluster.Requests() {
		if text := describe(r); text != "" {
			lines = append(lines, line{r.Time, text})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%10.3f %s\n", l.at.Sub(h.began).Seconds(), l.text)
	}
	return b.String()
}

// describe returns a line for a request. "" means that it is irrelevant.
func describe(r gopftest.Request) string {
	who := "user"
	if p := r.Header.Get(processHeader); p != "" {
		who = "p" + p
	}
	interesting := r.Write() && r.Resource != "leases" || r.Resource == "things" && r.Verb != "watch" || r.Resource == "things" && !strings.Contains(r.Path, "timeoutSeconds=1&")
	if !interesting {
		return ""
	}
	target := r.Resource
	if r.Name != "" {
		target = r.Name
	}
	if r.Subresource != "" {
		target += "/" + r.Subresource
	}
	return fmt.Sprintf("    %s %s %s %d %s", who, r.Verb, target, r.Code, cutText(string(r.Body), 300))
}

func cutText(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
