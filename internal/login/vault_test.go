package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

var pods = kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// world is a server, a client and its logins, in virtual time.
type world struct {
	t       *testing.T
	started time.Time

	mu       sync.Mutex
	accepted []string // tokens
	seen     []string // "1s token" or "1s no token"
	logins   []string // times
	brings   func() (map[string]*Credentials, error)
	states   []string

	vault  *Vault
	client *kube.Client
	log    *lines
}

func (w *world) now() string { return time.Since(w.started).String() }

// RoundTrip is the server.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(`{"metadata":{"name":"a"}}`))}
	if req.URL.Query().Has("watch") {
		resp.Body = &silent{req}
	}
	if !slices.Contains(w.accepted, token) {
		token = "no " + token
		resp.StatusCode = http.StatusUnauthorized
		resp.Body = io.NopCloser(strings.NewReader(""))
	}
	w.seen = append(w.seen, w.now()+" "+token)
	return resp, nil
}

type silent struct{ req *http.Request }

func (s *silent) Read([]byte) (int, error) {
	<-s.req.Context().Done()
	return 0, s.req.Context().Err()
}

func (s *silent) Close() error { return nil }

func (w *world) accept(tokens ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = tokens
}

// creds returns credentials with a token.
func (w *world) creds(token string, adjust ...func(*Credentials)) *Credentials {
	c := &Credentials{Config: &rest.Config{Host: "https://server", BearerToken: token, Transport: w}}
	for _, a := range adjust {
		a(c)
	}
	return c
}

func (w *world) bring(found map[string]*Credentials) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brings = func() (map[string]*Credentials, error) { return found, nil }
}

func priority(p int) func(*Credentials) { return func(c *Credentials) { c.Priority = p } }
func expires(in time.Duration) func(*Credentials) {
	at := time.Now().Add(in)
	return func(c *Credentials) { c.Expires = at }
}

type found = map[string]*Credentials

// inWorld runs a test with a vault that was started with the result of the first login.
func inWorld(t *testing.T, begin func(w *world) found, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, started: time.Now(), log: &lines{}}
		w.bring(begin(w))
		w.vault = New(Config{Log: slog.New(w.log), Random: func(int) int { return 0 },
			Login: func(context.Context) (map[string]*Credentials, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.logins = append(w.logins, w.now())
				return w.brings()
			},
			Status: func(s Status) { w.states = append(w.states, fmt.Sprintf("%s %v", w.now(), s.Err != nil)) },
		})
		creds, err := w.vault.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := kube.DefaultOptions()
		o.Log = slog.New(slog.DiscardHandler)
		o.Unauthorized = w.vault.Unauthorized
		if w.client, err = kube.NewClient(creds.Config, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.vault.Run(ctx, w.client) })
		test(w)
		cancel()
		running.Wait()
	})
}

func (w *world) get() {
	w.t.Helper()
	if _, err := w.client.Get(w.t.Context(), kube.Target{Info: pods, Namespace: "ns", Name: "a"}); err != nil {
		w.t.Error(err)
	}
}

func (w *world) want(what string, want []string, got *[]string) {
	w.t.Helper()
	synctest.Wait() // until the vault is idle
	if diff := cmp.Diff(want, *got); diff != "" {
		w.t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// lines collects log lines at INFO and above.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, r.Level.String()+" "+r.Message)
	return nil
}

func TestTheHighestPriorityIsUsed(t *testing.T) {
	inWorld(t, func(w *world) found {
		return found{"a": w.creds("low"), "b": w.creds("high", priority(20), func(c *Credentials) { c.Namespace = "mine" }), "c": w.creds("middle", priority(10))}
	}, func(w *world) {
		w.accept("high")
		w.get()
		w.want("requests", []string{"0s high"}, &w.seen)
		if ns := w.vault.Namespace(); ns != "mine" {
			t.Errorf("namespace: got %q", ns)
		}
	})
}

func TestRemainingCredentialsAreUsedBeforeALogin(t *testing.T) {
	inWorld(t, func(w *world) found {
		return found{"a": w.creds("one", priority(2)), "b": w.creds("two", priority(1)), "c": w.creds("three")}
	}, func(w *world) {
		w.accept("three")
		w.get()
		w.want("requests", []string{"0s no one", "0s no one", "0s no two", "0s no two", "0s three"}, &w.seen)
		w.want("logins", []string{"0s"}, &w.logins)
		w.want("states", []string{"0s true", "0s true", "0s false"}, &w.states)
	})
}

func TestALoginReleasesAllWaitingRequests(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("old")} }, func(w *world) {
		w.accept("old", "new")
		w.get()
		watch, err := w.client.Watch(w.t.Context(), pods, "", kube.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		time.Sleep(time.Hour)
		w.accept("new")
		w.bring(found{"a": w.creds("new")})
		var all sync.WaitGroup
		for range 5 {
			all.Go(w.get)
		}
		all.Wait()
		if waited := time.Since(w.started) - time.Hour; waited != 0 {
			t.Errorf("the requests waited for %v", waited)
		}
		w.want("logins", []string{"0s", "1h0m0s"}, &w.logins)
		if _, err := watch.Next(); !errors.Is(err, kube.ErrReplaced) {
			t.Errorf("the watch: got %v", err)
		}
		w.want("log", []string{"INFO Initial authentication has been initiated.", "INFO Initial authentication has finished.",
			"INFO Re-authentication has been initiated.", "INFO Re-authentication has finished.", "INFO Switched to other credentials."}, &w.log.text)
	})
}

func TestRejectedCredentialsAreRetriedWhileLoginsReturnNoOthers(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("same")} }, func(w *world) {
		time.AfterFunc(150*time.Second, func() { w.accept("same") })
		w.get()
		w.want("logins", []string{"0s", "0s", "1s", "3s", "7s", "15s", "31s", "1m3s", "2m3s"}, &w.logins)
		w.want("states", []string{"0s true", "2m32.75s false"}, &w.states)
		if s := w.vault.Status(); s.Err != nil {
			t.Errorf("status: got %v", s)
		}
		// They are good again, and the pauses restart.
		w.accept("other")
		w.bring(found{"a": w.creds("same"), "b": w.creds("other")})
		w.get()
		if waited := w.now(); waited != "2m32.75s" {
			t.Errorf("got the response after %s", waited)
		}
	})
}

func TestRejectedCredentialsAreRetriedInTurn(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("one"), "b": w.creds("two")} }, func(w *world) {
		// This login starts when both are rejected, and both are known.
		time.AfterFunc(2*time.Second, func() { w.accept("two") })
		w.get()
		if now := time.Since(w.started); now > 5*time.Second {
			t.Errorf("it took %v to find the accepted ones", now)
		}
		if got := w.seen[len(w.seen)-1]; !strings.HasSuffix(got, "s two") {
			t.Errorf("the last request was %s", got)
		}
	})
}

func TestLoginsThatReturnBadCredentialsArePaced(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("0")} }, func(w *world) {
		n := 0
		w.mu.Lock()
		w.brings = func() (map[string]*Credentials, error) {
			n++
			return found{"a": w.creds(fmt.Sprint(n))}, nil
		}
		w.mu.Unlock()
		w.accept("5")
		w.get()
		w.want("logins", []string{"0s", "0s", "1s", "3s", "7s", "15s"}, &w.logins)
	})
}

func TestFailedLoginsAreRepeated(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("old")} }, func(w *world) {
		n := 0
		w.mu.Lock()
		w.brings = func() (map[string]*Credentials, error) {
			switch n++; n {
			case 1:
				return nil, errors.New("no")
			case 2:
				return nil, nil
			case 3:
				return found{"a": nil, "b": {Config: &rest.Config{Host: "https://a b"}}}, nil
			case 4:
				return found{"a": w.creds("new")}, errors.New("another one has failed")
			}
			return nil, errors.New("too many logins")
		}
		w.mu.Unlock()
		w.accept("new")
		w.get()
		w.want("logins", []string{"0s", "0s", "1s", "3s", "7s"}, &w.logins)
		synctest.Wait()
		var bad []string
		for _, line := range w.log.text {
			if !strings.HasPrefix(line, "INFO ") {
				bad = append(bad, line)
			}
		}
		w.want("log", []string{"ERROR The login failed; retrying.", "WARN The login returned no credentials; retrying.",
			"ERROR Cannot use the credentials.", "ERROR The login failed; retrying."}, &bad)
	})
}

func TestExpiringCredentialsAreReplacedInTime(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("one", expires(time.Hour))} }, func(w *world) {
		w.accept("one", "two")
		w.bring(found{"a": w.creds("two", expires(2*time.Hour+5*time.Minute))})
		for range 12 * 2 {
			time.Sleep(5 * time.Minute)
			w.get()
		}
		w.want("logins", []string{"0s", "59m0s"}, &w.logins)
		for i, got := range w.seen {
			want := "one"
			if i >= 11 {
				want = "two"
			}
			if !strings.HasSuffix(got, "s "+want) {
				t.Errorf("request %d: got %s, want %s", i, got, want)
			}
		}
		w.want("states", nil, &w.states)
	})
}

func TestUnusableCredentialsDoNotReplaceGoodOnes(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("one", expires(time.Hour))} }, func(w *world) {
		w.accept("one", "two")
		w.bring(found{"a": {Config: &rest.Config{Host: "https://a b"}}})
		time.Sleep(59*time.Minute + 30*time.Second)
		w.get()
		w.bring(found{"a": w.creds("two")})
		time.Sleep(time.Minute)
		w.get()
		w.want("requests", []string{"59m30s one", "1h0m30s two"}, &w.seen)
		w.want("logins", []string{"0s", "59m0s", "59m1s", "59m3s", "59m7s", "59m15s", "59m31s"}, &w.logins)
		w.want("states", nil, &w.states)
	})
}

func TestRenewedCredentialsStayInUse(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("one", expires(time.Hour))} }, func(w *world) {
		w.accept("one")
		w.bring(found{"a": w.creds("one", expires(3*time.Hour))})
		watch, err := w.client.Watch(w.t.Context(), pods, "", kube.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		own := errors.New("enough")
		time.AfterFunc(150*time.Minute, func() { watch.CloseWith(own) })
		if _, err := watch.Next(); !errors.Is(err, own) {
			t.Errorf("the watch: got %v", err)
		}
		w.want("logins", []string{"0s", "59m0s"}, &w.logins)
	})
}

func TestRequestsWaitWhenCredentialsHaveExpired(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("one", expires(10*time.Second))} }, func(w *world) {
		w.accept("one", "two")
		w.bring(nil)
		time.Sleep(11 * time.Second)
		if _, ok := errors.AsType[*ExpiredError](w.vault.Status().Err); !ok {
			t.Errorf("status: got %v", w.vault.Status())
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second/2)
		defer cancel()
		_, err := w.client.Get(ctx, kube.Target{Info: pods, Namespace: "ns", Name: "a"})
		if _, ok := errors.AsType[*ExpiredError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		w.bring(found{"a": w.creds("two")})
		w.get()
		w.want("logins", []string{"0s", "9s", "10s", "12s"}, &w.logins)
		w.want("requests", []string{"12s two"}, &w.seen)
		w.want("states", []string{"10s true", "12s false"}, &w.states)
	})
}

func TestExpiredCredentialsAreReplacedByOthers(t *testing.T) {
	inWorld(t, func(w *world) found {
		return found{"a": w.creds("one", priority(1), expires(10*time.Second)), "b": w.creds("two")}
	}, func(w *world) {
		w.accept("one", "two")
		w.bring(found{})
		w.get()
		time.Sleep(11 * time.Second)
		w.get()
		w.want("requests", []string{"0s one", "11s two"}, &w.seen)
		w.want("states", nil, &w.states)
	})
}

func TestAnOperatorWithoutCredentialsDoesNotStart(t *testing.T) {
	own := errors.New("no")
	cases := map[string]struct {
		found found
		err   error
		want  error
	}{
		"nothing":    {},
		"only empty": {found: found{"a": nil, "b": {}}},
		"expired":    {found: found{"a": {Config: &rest.Config{}, Expires: time.Now()}}},
		"an error":   {found: found{"a": {Config: &rest.Config{}}}, err: own, want: own},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := New(Config{Log: slog.New(slog.DiscardHandler), Login: func(context.Context) (map[string]*Credentials, error) { return c.found, c.err }})
			_, err := v.Login(t.Context())
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(e.Err, c.want) || e.Error() == "" {
				t.Errorf("got %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(own)
	v := New(Config{Log: slog.New(slog.DiscardHandler), Login: func(ctx context.Context) (map[string]*Credentials, error) { return nil, ctx.Err() }})
	if _, err := v.Login(ctx); !errors.Is(err, own) {
		t.Errorf("with an ended context: got %v", err)
	} else if _, ok := errors.AsType[*Error](err); ok {
		t.Errorf("with an ended context: got a %T", err)
	}
}

func TestLoginsThatDidNotHelpAreRepeatedWithJitter(t *testing.T) {
	inWorld(t, func(w *world) found { return found{"a": w.creds("0")} }, func(w *world) {
		w.vault.mu.Lock()
		w.vault.cfg.Jitter = func() float64 { return 0.5 }
		w.vault.mu.Unlock()
		n := 0
		w.mu.Lock()
		w.brings = func() (map[string]*Credentials, error) {
			n++
			return found{"a": w.creds(fmt.Sprint(n))}, nil
		}
		w.mu.Unlock()
		w.accept("4")
		w.get()
		w.want("logins", []string{"0s", "0s", "900ms", "2.7s", "6.3s"}, &w.logins)
	})
}
