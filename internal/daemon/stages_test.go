package daemon

import (
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf/internal/handler"
)

func TestTheStagesOfAStopAndTheirTimes(t *testing.T) {
	names := map[stage]string{telling: "tell", cancelling: "cancel", polling: "poll", abandoning: "abandon"}
	cases := map[string]struct {
		stop stop
		want []string // with due in parentheses
	}{
		"neither grace nor timeout": {
			stop{},
			[]string{"0s cancel (0s)", "10ms poll (1m0s)", "1m0s poll (1m0s)", "2m0s poll (2m0s)"},
		},
		"grace": {
			stop{grace: 3 * time.Second},
			[]string{"10ms tell (3s)", "3s cancel (3s)", "3.01s poll (1m3s)", "1m3s poll (1m3s)"},
		},
		"timeout": {
			stop{timeout: handler.Some(4 * time.Second)},
			[]string{"0s cancel (0s)", "4s abandon (4s)"},
		},
		"both": {
			stop{grace: 3 * time.Second, timeout: handler.Some(4 * time.Second)},
			[]string{"10ms tell (3s)", "3s cancel (3s)", "7s abandon (7s)"},
		},
		"grace too short to be logged": {
			stop{grace: time.Millisecond, timeout: handler.Some(time.Duration(0))},
			[]string{"1ms cancel (1ms)", "11ms abandon (1ms)"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, got := c.stop, []string{}
			s.since, s.polling = time.Now(), time.Minute
			for range 4 {
				what, at := s.next()
				if what == nothing {
					break
				}
				got = append(got, fmt.Sprintf("%v %s (%v)", at.Sub(s.since), names[what], s.due().Sub(s.since)))
				switch what {
				case telling:
					s.told = true
				case cancelling:
					s.cancelled = true
				case polling:
					s.polls++
				case abandoning:
					s.abandoned = true
				}
			}
			same(t, c.want, got)
		})
	}
}
