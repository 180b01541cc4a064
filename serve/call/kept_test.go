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

func TestAKeptProgramIsRestartedWithDelays(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"exits":          {"echo sorry >&2; exit 4", "exit code 4: sorry"},
		"dies":           {"kill -9 $$", "signal: killed"},
		"ends":           {"exit 0", "the program exited without a response"},
		"another id":     {`echo '{"id": 77}'`, "the response has the id 77"},
		"no id":          {`echo '{}'`, "the response has the id"},
		"no JSON":        {"echo '<html>'", "the response is not a JSON object"},
		"a long line":    {"head -c 5000000 /dev/zero; echo", "the response has more than 4194304 bytes"},
		"closes its end": {"exec >&-; sleep 1000", "read the response"},
	} {
		t.Run(name, func(t *testing.T) {
			k := kept(c.answer)
			defer k.Close()
			_, err := k.Call(t.Context(), request(nil))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			_, err = k.Call(t.Context(), request(nil))
			var later *Error
			if !errors.As(err, &later) || later.After == nil || *later.After > firstRestart {
				t.Fatalf("the second call was not postponed: %v", err)
			}
			time.Sleep(*later.After)
			if _, err = k.Call(t.Context(), request(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
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
