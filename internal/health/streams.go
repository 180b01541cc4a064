package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// streams checks each resource: whether it is watched at all, and whether the loops of
// its streams make progress.
func (j judge) streams() []Finding {
	all := slices.SortedStableFunc(slices.Values(j.Streams), func(a, b Stream) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	var found []Finding
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Resource == all[0].Resource {
			n++
		}
		found = append(found, j.resource(all[:n])...)
		all = all[n:]
	}
	return found
}

// resource checks the streams of one resource.
func (j judge) resource(streams []Stream) []Finding {
	byFate := map[fate][]Stream{}
	for _, s := range streams {
		f := j.fate(s)
		byFate[f] = append(byFate[f], s)
	}
	about := "stream of " + streams[0].Resource
	var found []Finding
	tell := func(f fate, l Level, text string) {
		if some := byFate[f]; len(some) > 0 {
			found = append(found, Finding{about, l, j.sentence(some, f, text)})
		}
	}
	trouble := Warning
	if len(byFate[stuck])+len(byFate[failing])+len(byFate[silent])+len(byFate[denied]) == len(streams) && j.Idle == "" {
		trouble = Unready
	}
	tell(stuck, Dead, "is stuck: its loop has done nothing for %s although the API server responds")
	tell(failing, trouble, "could not be watched for %s")
	tell(silent, trouble, "has been silent for %s, and its watch was not replaced")
	tell(denied, j.ifStrict(), "could not be served for %s")
	tell(blocked, Warning, "has more events than its handlers can process; new events have waited for %s")
	if trouble == Unready && len(byFate[failing])+len(byFate[silent]) == 0 {
		tell(stuck, Unready, "has not been watched by any stream for %s") // a stuck stream is silent as well
	}
	if some := byFate[well]; len(some) > 0 {
		found = append(found, Finding{about, Fine, tally(some)})
	}
	return found
}

// tally counts healthy streams by state. Some of them may have failed just now.
func tally(some []Stream) string {
	var states []string
	for _, state := range []State{Watching, Listing, Failing} {
		n := 0
		for _, s := range some {
			if s.State == state {
				n++
			}
		}
		if n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state))
		}
	}
	return fmt.Sprintf("Streams of %s%s: %s.", some[0].Resource, where(some), strings.Join(states, ", "))
}

// fate is the condition of a stream.
type fate int

const (
	well fate = iota
	stuck
	failing
	silent
	denied
	blocked
)

func (j judge) fate(s Stream) fate {
	switch {
	case !s.Blocked.IsZero():
		// Its loop stands still, but for a reason. A restart would only interrupt the
		// handlers that it waits for.
		if j.lasting(s, blocked) > j.patience() {
			return blocked
		}
		return well
	case s.Denied:
		return denied
	case j.curable() && j.mustMove(s) && j.lasting(s, stuck) >= max(3*j.Inactivity, leastStuck):
		return stuck
	case s.State == Failing && j.lasting(s, failing) > j.patience():
		return failing
	case s.State != Failing && j.Inactivity > 0 && j.lasting(s, silent) > j.patience():
		return silent
	}
	return well
}

// mustMove reports whether the loop of the stream has deadlines. Only a watch without
// an inactivity timeout has none.
func (j judge) mustMove(s Stream) bool { return s.State != Watching || j.Inactivity > 0 }

// lasting returns how long a stream has been in the condition f.
func (j judge) lasting(s Stream, f fate) time.Duration {
	switch f {
	case stuck:
		return j.age(latest(s.Moved, s.Since))
	case silent:
		return j.age(latest(s.Alive, s.Since))
	case blocked:
		return j.age(s.Blocked)
	}
	return j.age(s.Since)
}

// sentence describes the condition of some streams of one resource, with the longest
// duration and the error of that stream.
func (j judge) sentence(some []Stream, f fate, text string) string {
	worst := slices.MaxFunc(some, func(a, b Stream) int { return cmp.Compare(j.lasting(a, f), j.lasting(b, f)) })
	sentence := some[0].Resource + where(some) + " " + fmt.Sprintf(text, words(j.lasting(worst, f)))
	if worst.Err != nil && (f == failing || f == denied) {
		sentence += ": " + oneLine(worst.Err.Error())
	}
	return sentence + "."
}

// where lists the namespaces, or some of them if there are many.
func where(some []Stream) string {
	const most = 5
	var names []string
	for _, s := range some {
		if s.Namespace != "" {
			names = append(names, s.Namespace)
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return " in namespace " + names[0]
	case n > most:
		return fmt.Sprintf(" in namespaces %s and %d more", strings.Join(names[:most], ", "), n-most)
	default:
		return " in namespaces " + strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
