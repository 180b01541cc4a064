package health_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/health"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// sound is a healthy operator.
func sound() health.Snapshot {
	return health.Snapshot{
		Started: true, Answered: ago(time.Second), Inactivity: 70 * time.Second,
		Streams: []health.Stream{watching("apps", ""), watching("pods", "a"), watching("pods", "b")},
	}
}

func watching(resource, namespace string) health.Stream {
	return health.Stream{Resource: resource, Namespace: namespace, State: health.Watching,
		Since: ago(time.Hour), Alive: ago(30 * time.Second), Moved: ago(10 * time.Second)}
}

func changed(base health.Stream, change func(*health.Stream)) health.Stream {
	change(&base)
	return base
}

func lost(base health.Stream, since time.Duration) health.Stream {
	return changed(base, func(s *health.Stream) {
		s.State, s.Since, s.Err = health.Failing, ago(since), fmt.Errorf("connection\n%s", "refused.")
	})
}

func quiet(base health.Stream, since time.Duration) health.Stream {
	return changed(base, func(s *health.Stream) { s.Alive = ago(since) })
}

func stuck(base health.Stream, since time.Duration) health.Stream {
	return changed(base, func(s *health.Stream) { s.Alive, s.Moved = ago(since), ago(since) })
}

func denied(base health.Stream) health.Stream {
	return changed(base, func(s *health.Stream) {
		s.State, s.Since, s.Err, s.Denied = health.Failing, ago(2*time.Hour), errors.New("pods is forbidden"), true
	})
}

func TestJudge(t *testing.T) {
	type want struct{ Live, Ready, Warnings, Notes []string }
	for _, c := range []struct {
		rule   string
		change func(*health.Snapshot)
		want   want
	}{
		{"healthy", func(*health.Snapshot) {}, want{}},

		{"not started is not ready", func(s *health.Snapshot) { *s = health.Snapshot{} },
			want{Ready: []string{"The operator is still starting."}}},
		{"not started has a reason", func(s *health.Snapshot) { *s = health.Snapshot{Starting: "handler 'login' is running"} },
			want{Ready: []string{"The operator is still starting: handler 'login' is running."}}},

		{"rejected credentials make unready, but not dead", func(s *health.Snapshot) {
			s.Refused, s.RefusedWhy = ago(5*time.Minute), errors.New("Unauthorized")
			s.Streams = []health.Stream{stuck(watching("pods", ""), 4*time.Minute)} // it waits for credentials
			s.Overdue = time.Hour
		}, want{
			Ready: []string{
				"The API server has rejected the credentials for 5m, and all requests wait for others: Unauthorized.",
				"pods has been silent for 4m, and its watch was not replaced.",
			},
			Warnings: []string{"Retries and timers are overdue by 1h: the alarm clock is late."},
		}},

		{"an outage of the API never makes dead", func(s *health.Snapshot) {
			s.Answered = ago(3 * time.Hour)
			for i := range s.Streams {
				s.Streams[i] = lost(stuck(s.Streams[i], 3*time.Hour), 3*time.Hour)
			}
			s.Overdue = 3 * time.Hour
		}, want{
			Ready: []string{
				"apps could not be watched for 3h: connection refused.",
				"pods in namespaces a and b could not be watched for 3h: connection refused.",
			},
			Warnings: []string{
				"The API server has not responded for 3h.",
				"Retries and timers are overdue by 3h: the alarm clock is late.",
			},
		}},
		{"an API server that never responded does not make dead", func(s *health.Snapshot) {
			s.Answered = time.Time{}
			s.Streams = []health.Stream{stuck(lost(watching("pods", ""), time.Hour), time.Hour)}
		}, want{
			Ready:    []string{"pods could not be watched for 1h: connection refused."},
			Warnings: []string{"The API server has never responded."},
		}},
		{"a short outage is ignored", func(s *health.Snapshot) {
			s.Streams = []health.Stream{lost(watching("pods", ""), time.Minute)}
		}, want{}},

		{"a stuck loop makes dead if the API server responds", func(s *health.Snapshot) {
			s.Streams[0] = stuck(s.Streams[0], 6*time.Minute+30*time.Second)
		}, want{
			Live:  []string{"apps is stuck: its loop has done nothing for 6m30s although the API server responds."},
			Ready: []string{"apps has not been watched by any stream for 6m30s."},
		}},
		{"one stuck loop of several leaves the resource served", func(s *health.Snapshot) {
			s.Streams[2] = stuck(s.Streams[2], 4*time.Minute)
		}, want{Live: []string{"pods in namespace b is stuck: its loop has done nothing for 4m although the API server responds."}}},
		{"a loop has a multiple of the inactivity timeout", func(s *health.Snapshot) {
			s.Streams[2] = stuck(s.Streams[2], 209*time.Second)
		}, want{Warnings: []string{"pods in namespace b has been silent for 3m29s, and its watch was not replaced."}}},
		{"a loop has minutes even if the inactivity timeout is short", func(s *health.Snapshot) {
			s.Inactivity = time.Second
			s.Streams = []health.Stream{stuck(watching("pods", ""), time.Minute)}
		}, want{Ready: []string{"pods has been silent for 1m, and its watch was not replaced."}}},
		{"a loop that retries is not stuck", func(s *health.Snapshot) {
			s.Streams[0] = lost(s.Streams[0], time.Hour)
		}, want{Ready: []string{"apps could not be watched for 1h: connection refused."}}},
		{"a new loop is not stuck", func(s *health.Snapshot) {
			s.Streams[0] = health.Stream{Resource: "apps", State: health.Listing, Since: ago(time.Minute)}
		}, want{}},
		{"a list that never ends is silent", func(s *health.Snapshot) {
			s.Streams[0] = health.Stream{Resource: "apps", State: health.Listing, Since: ago(2 * time.Minute), Moved: now}
		}, want{Ready: []string{"apps has been silent for 2m, and its watch was not replaced."}}},
		{"without an inactivity timeout a watch may be silent forever", func(s *health.Snapshot) {
			s.Inactivity = 0
			s.Streams = []health.Stream{stuck(watching("pods", ""), 24*time.Hour)}
		}, want{}},
		{"without an inactivity timeout failures count, and a list must make progress", func(s *health.Snapshot) {
			s.Inactivity = 0
			s.Streams = []health.Stream{
				lost(watching("apps", ""), 2*time.Minute),
				{Resource: "pods", State: health.Listing, Since: ago(time.Hour)},
			}
		}, want{
			Live:  []string{"pods is stuck: its loop has done nothing for 1h although the API server responds."},
			Ready: []string{"apps could not be watched for 2m: connection refused.", "pods has not been watched by any stream for 1h."},
		}},
		{"a full backlog is no reason to restart", func(s *health.Snapshot) {
			s.Streams[0] = stuck(s.Streams[0], time.Hour)
			s.Streams[0].Blocked = ago(time.Hour)
		}, want{Warnings: []string{"apps has more events than its handlers can process; new events have waited for 1h."}}},

		{"an alarm overdue by minutes makes dead", func(s *health.Snapshot) { s.Overdue = 150 * time.Second },
			want{Live: []string{"Retries and timers are overdue by 2m30s: the alarm clock is stuck."}}},
		{"reviews that wait for seconds are a warning while others are served", func(s *health.Snapshot) {
			s.Reviews, s.ReviewsSince, s.ReviewsBlocked = 3, ago(6*time.Second), ago(2*time.Second)
		}, want{Warnings: []string{"Admission reviews wait for capacity: 3 of them, the first for 6s."}}},
		{"reviews that block others for seconds make unready", func(s *health.Snapshot) {
			s.Reviews, s.ReviewsSince, s.ReviewsBlocked = 3, ago(6*time.Second), ago(5*time.Second)
		},
			want{Ready: []string{"Admission reviews wait for capacity: 3 of them, the first for 6s."}}},
		{"without a webhook server, an operator with admission handlers is unready", func(s *health.Snapshot) { s.NoReviews = true },
			want{Ready: []string{"Admission reviews are not answered yet: the webhook server starts when the indices are filled."}}},
		{"reviews that wait for a second are a warning", func(s *health.Snapshot) { s.Reviews, s.ReviewsSince = 3, ago(2*time.Second) },
			want{Warnings: []string{"Admission reviews wait for capacity: 3 of them, the first for 2s."}}},
		{"an alarm overdue by seconds is a warning", func(s *health.Snapshot) { s.Overdue = 20 * time.Second },
			want{Warnings: []string{"Retries and timers are overdue by 20s: the alarm clock is late."}}},

		{"a resource that is watched somewhere is served", func(s *health.Snapshot) {
			s.Streams[1] = quiet(s.Streams[1], 100*time.Second)
		}, want{Warnings: []string{"pods in namespace a has been silent for 1m40s, and its watch was not replaced."}}},
		{"silent and failing streams count together", func(s *health.Snapshot) {
			s.Streams[1], s.Streams[2] = quiet(s.Streams[1], 100*time.Second), lost(s.Streams[2], 2*time.Minute)
		}, want{Ready: []string{
			"pods in namespace b could not be watched for 2m: connection refused.",
			"pods in namespace a has been silent for 1m40s, and its watch was not replaced.",
		}}},
		{"a watch has a moment to be replaced", func(s *health.Snapshot) {
			s.Streams[0] = quiet(s.Streams[0], 80*time.Second)
		}, want{}},

		{"a forbidden resource is a warning", func(s *health.Snapshot) { s.Streams[0] = denied(s.Streams[0]) },
			want{Warnings: []string{"apps could not be served for 2h: pods is forbidden."}}},
		{"a problem is a warning", func(s *health.Snapshot) { s.Problems = []string{"There is no resource foos.example.com"} },
			want{Warnings: []string{"There is no resource foos.example.com"}}},
		{"Strict makes both unready, and not dead", func(s *health.Snapshot) {
			s.Strict, s.Streams[0], s.Problems = true, denied(s.Streams[0]), []string{"There is no resource foos.example.com"}
		}, want{Ready: []string{"apps could not be served for 2h: pods is forbidden.", "There is no resource foos.example.com"}}},
		{"forbidden here and failing there is not watched at all", func(s *health.Snapshot) {
			s.Streams[1], s.Streams[2] = denied(s.Streams[1]), lost(s.Streams[2], 2*time.Minute)
		}, want{
			Ready:    []string{"pods in namespace b could not be watched for 2m: connection refused."},
			Warnings: []string{"pods in namespace a could not be served for 2h: pods is forbidden."},
		}},

		{"a paused operator is ready, with a note", func(s *health.Snapshot) {
			s.Idle, s.Streams = "paused by the peer xyz", nil
		}, want{Notes: []string{"The operator is idle on purpose: paused by the peer xyz."}}},
		{"a standby operator with failing streams is ready", func(s *health.Snapshot) {
			s.Idle, s.Streams[0] = "standing by for the leader xyz", lost(s.Streams[0], time.Hour)
		}, want{
			Warnings: []string{"apps could not be watched for 1h: connection refused."},
			Notes:    []string{"The operator is idle on purpose: standing by for the leader xyz."},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := sound()
			c.change(&s)
			r := health.Judge(now, s)
			got := want{r.Live.Reasons, r.Ready.Reasons, r.Warnings, r.Notes}
			none := cmp.Transformer("none", func(s []string) string { return strings.Join(s, "\n") })
			if diff := cmp.Diff(c.want, got, none); diff != "" {
				t.Error(diff)
			}
			if r.Live.OK != (len(c.want.Live) == 0) || r.Ready.OK != (len(c.want.Ready) == 0) || r.Started != s.Started {
				t.Errorf("live %v, ready %v, started %v do not match the reasons", r.Live.OK, r.Ready.OK, r.Started)
			}
		})
	}
}

func TestJudgeNamesOnlySomeOfManyNamespaces(t *testing.T) {
	s := sound()
	s.Streams = nil
	for i := range 1000 {
		s.Streams = append(s.Streams, lost(watching("pods", fmt.Sprintf("ns%03d", i)), time.Hour))
	}
	got := health.Judge(now, s).Ready.Reasons
	want := []string{"pods in namespaces ns000, ns001, ns002, ns003, ns004 and 995 more could not be watched for 1h: connection refused."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJudgeTruncatesLongErrors(t *testing.T) {
	s := sound()
	s.Problems = []string{strings.Repeat("ä", 10_000)}
	if n := len([]rune(health.Judge(now, s).Warnings[0])); n != 501 {
		t.Errorf("%d characters", n)
	}
}

func TestJudgeReportsAllChecks(t *testing.T) {
	s := sound()
	s.Streams[2] = lost(s.Streams[2], time.Second)
	want := []health.Finding{
		{About: "start", Level: health.Fine, Text: "The operator has started."},
		{About: "credentials", Level: health.Fine, Text: "The credentials are not rejected."},
		{About: "api", Level: health.Fine, Text: "The API server responded 1s ago."},
		{About: "alarms", Level: health.Fine, Text: "No retry or timer is overdue."},
		{About: "stream of apps", Level: health.Fine, Text: "Streams of apps: 1 watching."},
		{About: "stream of pods", Level: health.Fine, Text: "Streams of pods in namespaces a and b: 1 watching, 1 failing."},
	}
	if diff := cmp.Diff(want, health.Judge(now, s).Findings); diff != "" {
		t.Error(diff)
	}
}
