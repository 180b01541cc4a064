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
