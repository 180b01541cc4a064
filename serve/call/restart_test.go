//go:build unix

package call

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// of returns a request for an object.
func of(namespace, name string) *Request {
	r := request(nil)
	r.Namespace, r.Name, r.Input.Object = namespace, name, map[string]any{"metadata": map[string]any{"name": name}}
	return r
}

// spoiled is a kept program that fails in a way for objects named bad. The result of
// other calls is its process id.
func spoiled(way string, change ...func(*spec.Call)) *Kept {
	return kept(`case "$line" in *'"name":"bad"'*) `+way+`;; *) printf '{"id": %d, "result": %d}\n' $id $$;; esac`, change...)
}

// A tenant must not stop or delay the calls of others by objects for which the program fails.
func TestAFailureOfAProgramDelaysOnlyItsNamespace(t *testing.T) {
	short := func(c *spec.Call) { c.CallTimeout = 300 * time.Millisecond }
	for name, c := range map[string]struct{ way, want string }{
		"exits":          {"echo sorry >&2; exit 4", "exit code 4: sorry"},
		"dies":           {"kill -9 $$", "signal: killed"},
		"ends":           {"exit 0", "the program exited without a response"},
		"another id":     {`echo '{"id": 77}'`, "the response has the id 77"},
		"no id":          {`echo '{}'`, "the response has the id"},
		"no JSON":        {"echo '<html>'", "the response is not a JSON object"},
		"a long line":    {"head -c 5000000 /dev/zero; echo", "the response has more than 4194304 bytes"},
		"closes its end": {"exec >&-; sleep 1000", "read the response"},
		"hangs":          {"sleep 1000", "the time limit of the call is over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := spoiled(c.way, short)
			defer k.Close()
			for range 4 { // the delays are 100, 200, 400 and 800 ms
				if _, err := k.Call(t.Context(), of("tenant", "bad")); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v", err)
				}
			}
			left, _ := k.backoffs.left(tenant{namespace: "tenant"})
			if left < 500*time.Millisecond {
				t.Errorf("the namespace waits for %v only", left)
			}
			began := time.Now()
			if _, err := k.Call(t.Context(), of("other", "good")); err != nil {
				t.Errorf("another namespace: %v", err)
			}
			if d := time.Since(began); d >= left {
				t.Errorf("another namespace waited for %v", d)
			}
			if _, err := k.Call(t.Context(), of("tenant", "good")); err != nil {
				t.Errorf("the same namespace: %v", err)
			}
			if d := time.Since(began); d < left {
				t.Errorf("the same namespace waited for %v, want %v", d, left)
			}
		})
	}
}

func TestATenantEndsNoProgramsThatOthersUse(t *testing.T) {
	k := spoiled("exit 1", func(c *spec.Call) { c.Processes = 3 })
	defer k.Close()
	if _, err := k.Call(t.Context(), of("tenant", "bad")); err == nil {
		t.Fatal("the call succeeded")
	}
	programs := map[any]bool{}
	for range 4 {
		out, err := k.Call(t.Context(), of("other", "good"))
		if err != nil {
			t.Fatal(err)
		}
		programs[out.Result] = true
		if _, err := k.Call(t.Context(), of("tenant", "bad")); err == nil {
			t.Fatal("the call succeeded")
		}
	}
	if len(programs) != 1 {
		t.Errorf("the other namespace used %d programs", len(programs))
	}
}

// A call that the program has not seen must not use up an attempt of the handler.
func TestACallWaitsForAProgramThatCannotStart(t *testing.T) {
	program := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700) }
	}
	const works = `while read -r line; do id=${line#*:}; printf '{"id": %d}\n' "${id%%,*}"; done`
	long := of("ns", "long")
	long.Input.Object["spec"] = strings.Repeat("x", 200_000) // more than a pipe holds
	for name, c := range map[string]struct {
		broken func(path string) error
		r      *Request
		want   string // the error of a call that does not wait
	}{
		"missing":                 {func(string) error { return nil }, of("ns", "a"), "no such file"},
		"exits at once":           {program("echo no database >&2; exit 3"), of("ns", "a"), "exit code 3: no database"},
		"exits at once, success":  {program("exit 0"), of("ns", "a"), "the program exited without a response"},
		"exits without long line": {program("exit 3"), long, "exit code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "program")
			if err := c.broken(path); err != nil {
				t.Fatal(err)
			}
			k := NewKept(Options{Call: spec.Call{Exec: []string{path}, Keep: true}})
			defer k.Close()
			hurried := *c.r
			hurried.NoWait = true
			if _, err := k.Call(t.Context(), &hurried); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a call that does not wait: got %v", err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 400*time.Millisecond, errStopped)
			defer cancel()
			if _, err := k.Call(ctx, c.r); !errors.Is(err, errStopped) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a call that ends: got %v", err)
			}
			if left, _ := k.backoffs.left(tenantOf(c.r)); left > 0 {
				t.Error("the namespace has a delay for a call that the program has not seen")
			}
			done := make(chan error, 1)
			go func() {
				_, err := k.Call(t.Context(), c.r)
				done <- err
			}()
			next := path + ".new"
			if err := errors.Join(program(works)(next), os.Rename(next, path)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("the call failed: %v", err)
			}
		})
	}
}

var errStopped = errors.New("stopped")

func TestReviewsDoNotWaitLongForAProgram(t *testing.T) {
	k := spoiled("exit 1")
	defer k.Close()
	r := of("ns", "bad")
	r.Input.Review = &Review{Operation: "CREATE", Client: "10.0.0.1"}
	began := time.Now()
	for time.Since(began) < 30*time.Second {
		_, err := k.Call(t.Context(), r)
		if err == nil {
			t.Fatal("the call succeeded")
		}
		if strings.Contains(err.Error(), "it gets the next one in") {
			return
		}
	}
	t.Error("reviews wait for long delays")
}

func TestCloseEndsCallsThatWaitForAProgram(t *testing.T) {
	k := NewKept(Options{Call: spec.Call{Exec: []string{"/no/such/program"}, Keep: true}})
	done := make(chan error, 1)
	go func() {
		_, err := k.Call(t.Context(), of("ns", "a"))
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	k.Close()
	if err := <-done; !errors.Is(err, errStopping) {
		t.Errorf("got %v", err)
	}
}

// review returns a request for the review of an object.
func review(client, name string) *Request {
	r := of("ns", name)
	r.Input.Review = &Review{Operation: "CREATE", Client: client}
	return r
}

// A network peer may disconnect during its review, or send one with a short deadline.
func TestAReviewWhoseClientLeavesEndsNoProgram(t *testing.T) {
	for name, leave := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"disconnects": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		},
		"has a short deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := spoiled(`sleep 0.5; printf '{"id": %d}\n' $id`)
			defer k.Close()
			first, err := k.Call(t.Context(), review("10.0.0.2", "good"))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				ctx, cancel := leave(t.Context())
				began := time.Now()
				if _, err := k.Call(ctx, review("10.0.0.1", "bad")); !errors.Is(err, ctx.Err()) || time.Since(began) > 5*time.Second {
					t.Errorf("got %v after %v", err, time.Since(began))
				}
				cancel()
				out, err := k.Call(t.Context(), review("10.0.0.2", "good"))
				if err != nil || out.Result != first.Result {
					t.Errorf("the program is %v, want %v; error: %v", out.Result, first.Result, err)
				}
			}
		})
	}
}

func TestAProgramThatHangsForAReviewIsEndedAfterTheClientHasLeft(t *testing.T) {
	k := spoiled("sleep 1000", func(c *spec.Call) { c.CallTimeout = 500 * time.Millisecond })
	defer k.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := k.Call(ctx, review("10.0.0.1", "bad")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := k.Call(t.Context(), review("10.0.0.2", "good")); err != nil {
		t.Errorf("got %v", err)
	}
	if !k.backoffs.suspects(tenant{"10.0.0.1", "ns"}) {
		t.Error("the client is not suspected")
	}
}

func TestProgramsOfAbandonedReviewsEndWithTheOperator(t *testing.T) {
	k := spoiled("sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := k.Call(ctx, review("10.0.0.1", "bad")); err == nil {
		t.Error("the call succeeded")
	}
	began := time.Now()
	if k.Close(); time.Since(began) > reviewTime-2*time.Second {
		t.Errorf("the end took %v", time.Since(began))
	}
}
