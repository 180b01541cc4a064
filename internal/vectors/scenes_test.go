package vectors_test

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scene is what a scenario of a transcript says about the operator and its cluster.
type scene struct {
	identity      string        // of the operator, or of the person who freezes others
	lifetime      time.Duration // of a freeze
	serverTimeout time.Duration // of watches
	namespaces    []string      // of the cluster
	patterns      []string      // of the namespaces that are served; none for the whole cluster
	peerings      []string      // paths of the peering objects that exist
}

var (
	sceneNamespaces = regexp.MustCompile(`cluster has namespaces ([^;]+)`)
	scenePattern    = regexp.MustCompile(`-n (?:'([^']*)'|([^\s;]+))`)
	scenePeering    = regexp.MustCompile(`KopfPeering/(\S+) exists only in ([^\s;]+)`)
)

// sceneOf reads a scenario. What it leaves out is as in the other ones, or is read
// off the requests.
func sceneOf(scenario string, requests []request) scene {
	s := scene{
		identity: "operator-pod-1", serverTimeout: 30 * time.Second, namespaces: []string{"default", "ns1", "ns2"},
		peerings: []string{"/apis/kopf.dev/v1/clusterkopfpeerings/default"},
	}
	for _, r := range requests {
		if seconds, err := strconv.Atoi(r.Query["timeoutSeconds"]); err == nil {
			s.serverTimeout = time.Duration(seconds) * time.Second
		}
	}
	if found := sceneNamespaces.FindStringSubmatch(scenario); found != nil {
		s.namespaces = strings.Split(strings.ReplaceAll(found[1], " ", ""), ",")
	}
	for _, found := range scenePattern.FindAllStringSubmatch(scenario, -1) {
		s.patterns = append(s.patterns, cmp.Or(found[1], found[2]))
	}
	name, namespace := "default", "ns1"
	if found := scenePeering.FindStringSubmatch(scenario); found != nil {
		name, namespace = found[1], found[2]
	}
	s.peerings = append(s.peerings, "/apis/kopf.dev/v1/namespaces/"+namespace+"/kopfpeerings/"+name)
	for _, r := range slices.Backward(requests) {
		if !strings.Contains(r.Path, "kopfpeerings/") {
			continue
		}
		for identity, record := range stringMap(stringMap(r.Body)["status"]) {
			s.identity = identity
			if seconds, ok := number64(stringMap(record)["lifetime"]); ok {
				s.lifetime = time.Duration(seconds) * time.Second
			}
		}
	}
	return s
}

func number64(v any) (int64, bool) {
	n, ok := v.(interface{ Int64() (int64, error) })
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// cluster makes the cluster of the scene.
func (s scene) cluster(t *testing.T) *wireCluster {
	c := newWireCluster(t, s.namespaces...)
	for i, path := range s.peerings {
		metadata := map[string]any{"name": path[strings.LastIndex(path, "/")+1:], "uid": "p" + strconv.Itoa(i+1), "resourceVersion": "99"}
		if parts := strings.Split(path, "/"); parts[4] == "namespaces" {
			metadata["namespace"] = parts[5]
		}
		c.objects[path] = map[string]any{"metadata": metadata}
	}
	return c
}

// freezing is one command of the scenario: freeze or resume.
type freezing struct {
	resume    bool
	namespace string // "" for the whole cluster
	peering   string
	priority  int
}

// commands reads the commands of a scenario: "CLI: freeze -A; resume -A".
func commands(t *testing.T, scenario string) (all []freezing) {
	_, text, _ := strings.Cut(scenario, ":")
	for command := range strings.SplitSeq(text, ";") {
		command, _, _ = strings.Cut(command, "(") // remarks
		words := strings.Fields(command)
		f := freezing{resume: words[0] == "resume", peering: "default", priority: 100}
		for i, word := range words[1:] {
			value := ""
			if i+2 < len(words) {
				value = words[i+2]
			}
			switch word {
			case "-n":
				f.namespace = value
			case "-P":
				f.peering = value
			case "-p":
				priority, err := strconv.Atoi(value)
				if err != nil {
					t.Fatal(err)
				}
				f.priority = priority
			}
		}
		all = append(all, f)
	}
	return all
}

// path is that of the peering object.
func (f freezing) path() string {
	if f.namespace == "" {
		return "/apis/kopf.dev/v1/clusterkopfpeerings/" + f.peering
	}
	return "/apis/kopf.dev/v1/namespaces/" + f.namespace + "/kopfpeerings/" + f.peering
}
