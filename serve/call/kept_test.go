//go:build unix

package call

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// loop is a kept program that calls the function answer for each line. $id is the id.
const loop = `while read -r line; do id=$(expr "$line" : '{"id":\([0-9]*\)'); answer; done`

func kept(answer string, change ...func(*spec.Call)) *Kept {
	o := script("answer() { "+answer+"; }; "+loop, change...)
	o.Call.Keep = true
	return NewKept(o)
}

func TestAKeptProgramGetsManyCalls(t *testing.T) {
	k := kept(`printf '{"id": %d, "result": %d}\n' $id $$`)
	defer k.Close()
	results := map[any]bool{}
	for range 20 {
		out, err := k.Call(t.Context(), request(nil))
		if err != nil {
			t.Fatal(err)
		}
		results[out.Result] = true
	}
	if len(results) != 1 {
		t.Errorf("the calls went to %d processes", len(results))
	}
}

func TestAKeptProgramThatHangsIsReplaced(t *testing.T) {
	k := kept(`test -e /nonexistent || sleep 1000`, func(c *spec.Call) { c.CallTimeout = 200 * time.Millisecond; c.Processes = 2 })
	defer k.Close()
	if _, err := k.Call(t.Context(), request(nil)); !errors.Is(err, errCallTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestAnUnknownKeyOfAKeptProgramIsAnErrorAndKeepsTheProgram(t *testing.T) {
	k := kept(`printf '{"id": %d, "resutl": 1}\n' $id`)
	defer k.Close()
	for range 2 {
		if _, err := k.Call(t.Context(), request(nil)); err == nil || !strings.Contains(err.Error(), `unknown key "resutl"`) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAClosedCallerFails(t *testing.T) {
	k := kept("echo")
	k.Close()
	if _, err := k.Call(t.Context(), request(nil)); err == nil {
		t.Error("no error")
	}
}
