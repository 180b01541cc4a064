package suggest

import "testing"

func TestMisspelledWordsAreRecognized(t *testing.T) {
	known := []string{"run", "freeze", "resume", "version", "namespace", "all-namespaces", "priority"}
	for typed, want := range map[string]string{
		"rnu": "run", "frezee": "freeze", "resum": "resume", "Version": "version", "namspace": "namespace", "prioritty": "priority",
		"vers": "version", "running": "run", "all-namespace": "all-namespaces", "delete": "", "x": "", "": "", "ru": "run",
	} {
		if got := Closest(typed, known); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

func TestDistances(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"pods", "pods", 0}, {"pdos", "pods", 1}, {"pod", "pods", 1}, {"kitten", "sitting", 3}, {"größe", "grosse", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestOnlyNearCertainMisspellingsAreTypos(t *testing.T) {
	for _, c := range []struct {
		typed, known string
		want         bool
	}{
		{"hosst", "host", true}, {"hst", "host", false}, {"hots", "host", true}, {"Host", "host", true}, {"hostname", "hostName", true},
		{"replicsa", "replicas", true}, {"replicaz", "replicas", true}, {"enable", "enabled", true}, {"lables", "labels", true},
		{"host", "host", false}, {"hosts", "host", false}, {"port", "ports", false}, {"node", "mode", false}, {"cpu", "gpu", false},
		{"ipv4", "ipv6", false}, {"server1", "server2", false}, {"server", "server2", false}, {"minReplicas", "maxReplicas", false},
		{"hostPath", "host", false}, {"zone", "region", false}, {"", "host", false},
	} {
		if got := Typo(c.typed, c.known); got != c.want {
			t.Errorf("%q for %q: got %v", c.typed, c.known, got)
		}
	}
}
