package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// Counts are the requests to the API server, by verb and resource with its subresource, like
// "PATCH gadgets/status".
type Counts map[string]float64

var sample = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// Requests reads the counts from the metrics of the API server.
func (c *Cluster) Requests(ctx context.Context) (Counts, error) {
	client, err := rest.HTTPClientFor(c.api.RESTConfig())
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.plane.Server()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	defer resp.Body.Close()
	counts := Counts{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := sample.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(m[1], -1) {
			labels[l[1]] = l[2]
		}
		what := labels["verb"] + " " + labels["resource"]
		if s := labels["subresource"]; s != "" {
			what += "/" + s
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		counts[what] += n
	}
	return counts, lines.Err()
}

// Since returns the difference to earlier counts.
func (c Counts) Since(before Counts) Counts {
	added := Counts{}
	for what, n := range c {
		if n -= before[what]; n > 0 {
			added[what] = n
		}
	}
	return added
}

// Writes returns the number of writes to a resource and its subresources.
func (c Counts) Writes(plural string) (n float64) {
	for what, count := range c {
		verb, resource, _ := strings.Cut(what, " ")
		resource, _, _ = strings.Cut(resource, "/")
		switch verb {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
			if resource == plural {
				n += count
			}
		}
	}
	return n
}

// WrittenOnce waits until there were as many writes to a resource since the earlier counts
// as there are objects.
func (c *Cluster) WrittenOnce(ctx context.Context, plural string, objects int, before Counts, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(500 * time.Millisecond) {
		now, err := c.Requests(ctx)
		if err != nil {
			return err
		}
		writes := now.Since(before).Writes(plural)
		if writes >= float64(objects) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v writes to %d %s within %v", writes, objects, plural, limit)
		}
	}
}

// AverageSize returns the size of a typical object of a built-in resource in JSON, without
// managedFields.
func (c *Cluster) AverageSize(ctx context.Context, plural string) (float64, error) {
	const few = 100
	info := kind.Info{Version: "v1", Plural: plural, Namespaced: true}
	items, _, err := c.api.Page(ctx, info, "default", kube.ListOptions{Selector: "gopf.dev/children"}, "")
	if err != nil || len(items) == 0 {
		return 0, err // other programs set no label
	}
	total := 0
	for _, item := range items[:min(few, len(items))] {
		total += item.Size()
	}
	return float64(total) / float64(min(few, len(items))), nil
}
