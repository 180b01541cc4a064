package process

import (
	"testing"
	"time"

	"gopf.dev/gopf/internal/handler"
)

func TestNext(t *testing.T) {
	now, later := handler.Some(time.Duration(0)), handler.Some(time.Minute)
	for name, c := range map[string]struct {
		result result
		want   step
	}{
		"nothing written, nothing due":              {result{}, thenWait},
		"nothing written, due later":                {result{due: later}, thenWait},
		"nothing written, due now":                  {result{due: now}, thenBackOff},
		"nothing written, handlers ran, due now":    {result{due: now, acted: true}, thenHandleState},
		"written":                                   {result{progressed: true}, thenHandleState},
		"written, due later":                        {result{progressed: true, due: later}, thenHandleState},
		"written, due now":                          {result{progressed: true, due: now}, thenHandleState},
		"records not kept":                          {result{progressed: true, acted: true, forgotten: true, due: later}, thenBackOff},
		"records not kept while stopping":           {result{progressed: true, forgotten: true, stopping: true, due: now}, thenBackOff},
		"a change of an earlier turn":               {result{progressed: true, resent: true}, thenHandleOccasion},
		"a change of an earlier turn, nothing new":  {result{resent: true, due: now}, thenHandleOccasion},
		"a change of an earlier turn while stopped": {result{progressed: true, resent: true, stopping: true}, thenStop},
		"interrupted":                               {result{progressed: true, acted: true, interrupted: true, due: now}, thenStop},
		"stopping":                                  {result{progressed: true, stopping: true}, thenStop},
		"stopping, nothing written":                 {result{stopping: true}, thenStop},
		"no response body":                          {result{stale: true, progressed: true, stopping: true, forgotten: true}, thenAwaitEvent},
		"gone":                                      {result{ended: true, progressed: true, resent: true}, thenEnd},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.result); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
