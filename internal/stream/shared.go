package stream

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// Shared is what all streams of one API server and one process have in common. The
// zero value is ready for use. It must not be copied.
//
// It finds out whether the server's versions went back, as they do after a restore
// from a backup. Then a watch from the last version would be silent until the server
// has come to that version again, and would have missed all changes before. So after
// a connection failure, one small list reads the server's version; and the version
// of every list is compared with what was seen before the list began. If a version
// went back, all streams list again, and those lists are authoritative.
//
// Versions are compared within one resource: others may be kept elsewhere and have
// versions of their own.
type Shared struct {
	marks atomic.Uint64

	mu        sync.Mutex
	epoch     int                              // how often versions went back
	turned    chan struct{}                    // closed, and replaced, when they do
	recovered chan struct{}                    // closed, and replaced, at the end of an outage
	suspect   chan struct{}                    // has an entry if a connection has failed since the last check began
	highest   map[schema.GroupResource]uint64  // versions seen in this epoch
	running   map[*Stream]schema.GroupResource // streams that have listed in this epoch
}

// Mark returns the next value of a counter that orders what one process learns and
// does: watch events as they arrive, lists as they begin, writes as they end. A
// clock would not do: a list may take any time.
func (s *Shared) Mark() uint64 { return s.marks.Add(1) }

// lock prepares the fields; the caller unlocks mu.
func (s *Shared) lock() {
	s.mu.Lock()
	if s.turned == nil {
		s.turned, s.recovered, s.suspect = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
		s.highest, s.running = map[schema.GroupResource]uint64{}, map[*Stream]schema.GroupResource{}
	}
}

func (s *Shared) currentEpoch() int {
	s.lock()
	defer s.mu.Unlock()
	return s.epoch
}

// after returns a channel that is closed once the epoch is over.
func (s *Shared) after(epoch int) <-chan struct{} {
	s.lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		over := make(chan struct{})
		close(over)
		return over
	}
	return s.turned
}

// outageEnds returns a channel that is closed when the server answers again after
// an outage.
func (s *Shared) outageEnds() <-chan struct{} {
	s.lock()
	defer s.mu.Unlock()
	return s.recovered
}

// reached is the highest version seen of a resource in this epoch.
func (s *Shared) reached(of schema.GroupResource) uint64 {
	s.lock()
	defer s.mu.Unlock()
	return s.highest[of]
}

// passed notes a version that a stream has seen in the epoch.
func (s *Shared) passed(epoch int, of schema.GroupResource, version uint64) {
	s.lock()
	defer s.mu.Unlock()
	if epoch == s.epoch && version > s.highest[of] {
		s.highest[of] = version
	}
}

// listed notes the version of a whole list, and that the resource can be listed.
// floor is what had been reached when the list began.
func (s *Shared) listed(from *Stream, epoch int, version, floor uint64) {
	of := from.Info.GVR().GroupResource()
	s.passed(epoch, of, version)
	s.lock()
	if epoch == s.epoch {
		s.running[from] = of
	}
	s.mu.Unlock()
	if version > 0 && version < floor {
		s.wentBack(epoch, from.Log, version, floor)
	}
}

// ended forgets a stream.
func (s *Shared) ended(from *Stream) {
	s.lock()
	defer s.mu.Unlock()
	delete(s.running, from)
}

// failed notes that a connection has failed: the server may come back as another
// one.
func (s *Shared) failed() {
	s.lock()
	defer s.mu.Unlock()
	select {
	case s.suspect <- struct{}{}:
	default:
	}
}

// wentBack begins a new epoch, unless that was done already.
func (s *Shared) wentBack(epoch int, log *slog.Logger, now, seen uint64) {
	s.lock()
	defer s.mu.Unlock()
	if epoch != s.epoch {
		return
	}
	log.Warn("The versions of the API server went back, as after a restore from a backup; listing everything again.", "seen", seen, "now", now)
	s.epoch++
	close(s.turned)
	s.turned = make(chan struct{})
	clear(s.highest)
	clear(s.running)
}

const (
	// gatherTime is how long a check waits for other streams to notice the same failure.
	gatherTime = 50 * time.Millisecond
	// checkInterval is the least time between two checks.
	checkInterval = time.Second
	// checkLimit is how long a check may take.
	checkLimit = 5 * time.Second
	// maxOutagePause is the longest pause between checks of a server that cannot be
	// reached, and maxOverloadPause of one that answers with errors.
	maxOutagePause   = time.Second
	maxOverloadPause = 5 * time.Second
)

// Run checks the server's version after each connection failure, until ctx is done.
// The end of an outage also ends the pauses of all streams.
func (s *Shared) Run(ctx context.Context, client *kube.Client, log *slog.Logger) {
	client = client.Derive(func(o *kube.Options) {
		o.Backoffs, o.Log = nil, slog.New(slog.DiscardHandler)
		if o.RequestTimeout <= 0 || o.RequestTimeout > checkLimit {
			o.RequestTimeout = checkLimit
		}
	})
	s.lock()
	suspect := s.suspect
	s.mu.Unlock()
	failures := 0
	for {
		if failures == 0 {
			select {
			case <-ctx.Done():
				return
			case <-suspect:
			}
			if sleep(ctx, gatherTime) != nil {
				return
			}
		}
		select {
		case <-suspect: // this check is about that failure, too
		default:
		}
		pause := checkInterval
		switch err := s.check(ctx, client, log); {
		case err != nil:
			pause = outagePause(failures, err, client.Jitter())
			failures++
		case failures > 0:
			failures = 0
			s.endOutage()
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

func (s *Shared) endOutage() {
	s.lock()
	defer s.mu.Unlock()
	close(s.recovered)
	s.recovered = make(chan struct{})
}

// outagePause is the pause after a check that has failed, with jitter.
func outagePause(failures int, err error, random jitter.Source) time.Duration {
	longest := maxOutagePause
	if _, answered := kube.Refused(err); answered {
		longest = maxOverloadPause
	}
	pause := min(100*time.Millisecond<<min(failures, 10), longest)
	return max(random.Shorten(pause, jitter.Slight), kube.RetryAfter(err))
}

// maxCandidates is how many resources a check lists at most.
const maxCandidates = 3

// check reads the server's version with a list of at most one object. Its error
// says that the server does not answer.
//
// A server that has just started may not serve all resources yet. Then others are
// tried; but only the one with the highest version seen can tell that nothing went
// back.
func (s *Shared) check(ctx context.Context, client *kube.Client, log *slog.Logger) (failed error) {
	epoch, candidates := s.candidates()
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		now, err := client.List(ctx, c.stream.Info, c.stream.Namespace, kube.ListOptions{Selector: c.stream.Selector, Fields: c.stream.Fields, Max: 1}, func(*object.Body) error { return nil })
		refusal, refused := kube.Refused(err)
		switch {
		case refused && refusal.Code < 500 && refusal.Code != http.StatusTooManyRequests:
			continue // it is not to be listed any more: another one will tell
		case refused:
			failed = cmp.Or(failed, err)
			continue
		case err != nil:
			return cmp.Or(failed, err)
		}
		v, valid := (object.Identity{ResourceVersion: now}).Version()
		if valid && v > 0 && v < c.version {
			s.wentBack(epoch, log, v, c.version)
			return nil
		}
		if failed == nil {
			return nil
		}
	}
	return failed
}

type candidate struct {
	stream  *Stream
	version uint64 // the highest seen
}

// candidates are resources that can be listed, that with the highest version first.
func (s *Shared) candidates() (epoch int, all []candidate) {
	s.lock()
	defer s.mu.Unlock()
	streams := map[schema.GroupResource]*Stream{} // any of each
	for from, of := range s.running {
		streams[of] = from
	}
	for of, from := range streams {
		if v := s.highest[of]; v > 0 {
			all = append(all, candidate{from, v})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.version, a.version) })
	return s.epoch, all
}
