package stream

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
)

func repeated(n int, a answer) []answer { return slices.Repeat([]answer{a}, n) }

func TestAStormIsOutlived(t *testing.T) {
	for name, storm := range map[string]answer{
		"unavailable":        status(503, "ServiceUnavailable"),
		"too many requests":  status(429, "TooManyRequests"),
		"forbidden":          status(403, "Forbidden"),
		"connection refused": broken(syscall.ECONNREFUSED),
	} {
		t.Run(name, func(t *testing.T) {
			script := append([]answer{closed(initialEnd("9"))}, repeated(20, storm)...)
			script = append(script, open(event("ADDED", "a", "1", "10")))
			o := observe(t, 2*time.Minute, &server{script: script}, nil)
			if diff := cmp.Diff([]string{"SYNCED", "ADDED a/1@10"}, o.events); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			want := []string{"0s watchlist", "0s watch 9", "100ms watch 9", "300ms watch 9", "700ms watch 9", "1.5s watch 9",
				"3.1s watch 9", "6.3s watch 9", "11.3s watch 9", "16.3s watch 9"}
			if diff := cmp.Diff(want, withoutProbes(o.requests)[:len(want)]); diff != "" {
				t.Errorf("requests: -want +got\n%s", diff)
			}
			if diff := cmp.Diff([]string{"WARN Cannot list or watch the resource; retrying.", "INFO Watching the resource again."}, o.log); diff != "" {
				t.Errorf("log, want one line per error and one for the end: -want +got\n%s", diff)
			}
			if len(o.states) != 4 || o.states[0] != "listing" || o.states[1] != "watching" ||
				!strings.HasPrefix(o.states[2], "failing: ") || o.states[3] != "watching" {
				t.Errorf("states: got %q", o.states)
			}
		})
	}
}

func TestPausesRestartAfterProgress(t *testing.T) {
	bad := status(500, "InternalError")
	script := slices.Concat([]answer{closed(initialEnd("9"))}, repeated(3, bad),
		[]answer{closed(bookmark("10"))}, repeated(2, bad), []answer{open()})
	o := observe(t, 10*time.Second, &server{script: script}, nil)
	want := []string{"0s watchlist", "0s watch 9", "100ms watch 9", "300ms watch 9", "700ms watch 9",
		"700ms watch 10", "800ms watch 10", "1s watch 10"}
	if diff := cmp.Diff(want, o.requests); diff != "" {
		t.Errorf("requests: -want +got\n%s", diff)
	}
}

func TestAWatchThatEndsAtOnceIsNotRepeatedInALoop(t *testing.T) {
	script := append([]answer{closed(initialEnd("9"))}, repeated(100, closed(bookmark("9")))...)
	o := observe(t, time.Minute, &server{script: script}, nil)
	if n := len(o.requests); n > 20 {
		t.Errorf("got %d requests in a minute", n)
	}
}

func TestListsThatEndAtOnceAreNotRepeatedInALoop(t *testing.T) {
	for name, script := range map[string][]answer{
		"streamed": repeated(100, closed(initialEnd("9"), errorEvent(410, "Expired"))),
		"in pages": append([]answer{status(422, "Invalid")}, slices.Repeat([]answer{list("9", ""), status(410, "Gone")}, 100)...),
		"vanished": append([]answer{status(422, "Invalid")}, slices.Repeat([]answer{list("9", ""), status(404, "NotFound")}, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, time.Minute, &server{script: script}, nil)
			if n := len(o.requests); n > 40 {
				t.Errorf("got %d requests in a minute", n)
			}
		})
	}
}

func TestForbiddenFromTheStart(t *testing.T) {
	script := append(repeated(5, status(403, "Forbidden")), open(event("ADDED", "a", "1", "5"), initialEnd("9")))
	o := observe(t, 10*time.Second, &server{script: script}, nil)
	if diff := cmp.Diff([]string{"LISTED a/1@5", "SYNCED"}, o.events); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"listing", "failing: 403 Forbidden", "watching"}, o.states); diff != "" {
		t.Errorf("states: -want +got\n%s", diff)
	}
}

func TestRetryAfterIsHonoredUpToFiveMinutes(t *testing.T) {
	cases := map[string]struct {
		seconds int
		want    string
	}{
		"longer than the pause":    {2, "2s watch 9"},
		"longer than the backoff":  {60, "1m0s watch 9"},
		"longer than five minutes": {3600, "5m0s watch 9"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, 6*time.Minute, &server{script: []answer{closed(initialEnd("9")), tooMany(c.seconds), open()}}, nil)
			if got := o.requests[2]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestBackoffIsShortenedByUpToAHalf(t *testing.T) {
	options := kube.DefaultOptions()
	options.Jitter = rand.Float64
	client, err := kube.NewClient(&rest.Config{Host: "http://server"}, options)
	if err != nil {
		t.Fatal(err)
	}
	stream := New(client, DefaultConfig(pods, "ns"))
	different := map[time.Duration]bool{}
	for range 100 {
		b := pauses{Backoff: backoff.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}, jitter: stream.jitter}
		for i, want := range []time.Duration{0, 100, 200, 400, 800, 1600, 3200, 5000, 5000} {
			want *= time.Millisecond
			if got := b.next(); got > want || got < want/2 {
				t.Fatalf("pause #%d: got %v, want between %v and %v", i, got, want/2, want)
			} else if i == 8 {
				different[got] = true
			}
		}
	}
	if len(different) < 50 {
		t.Errorf("100 streams come back at only %d instants", len(different))
	}
}

func TestJudge(t *testing.T) {
	refusal := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}}
	}
	cases := map[string]struct {
		err       error
		streaming bool
		strikes   int
		want      step
	}{
		"broken connection":                  {err: errors.New("reset"), want: resume},
		"expired version":                    {err: refusal(410, "Expired"), want: relist},
		"expired by its reason only":         {err: trouble{refusal(0, "Expired")}, want: relist},
		"missing kind":                       {err: refusal(404, "NotFound"), want: relist},
		"bad version":                        {err: refusal(400, "BadRequest"), want: relist},
		"forbidden":                          {err: refusal(403, "Forbidden"), want: resume},
		"unavailable":                        {err: refusal(503, "ServiceUnavailable"), want: resume},
		"error event":                        {err: trouble{refusal(500, "InternalError")}, strikes: 1, want: resume},
		"error event again":                  {err: trouble{refusal(500, "InternalError")}, strikes: 2, want: relist},
		"streamed list not supported":        {err: refusal(400, "BadRequest"), streaming: true, want: listPages},
		"streamed list disabled":             {err: refusal(422, "Invalid"), streaming: true, want: listPages},
		"streamed list forbidden":            {err: refusal(403, "Forbidden"), streaming: true, want: resume},
		"error event within a streamed list": {err: trouble{refusal(504, "Timeout")}, streaming: true, strikes: 5, want: resume},
		"bad request within a streamed list": {err: trouble{refusal(400, "BadRequest")}, streaming: true, want: resume},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judge(c.err, c.streaming, c.strikes); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
