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

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// Shared is the state that all streams of one API server share in a process. The zero
// value is ready for use. It must not be copied.
//
// It detects that the server's resource versions went back, as they do after a restore
// from a backup. A watch from the last version would then be silent until the server
// reaches that version again, and would miss all changes before. Therefore one small
// list reads the server's version after a connection failure, and the version of every
// list is compared with the versions seen before the list started. If a version went
// back, all streams relist, and those lists are authoritative.
//
// Versions are compared per resource, because other resources may be in another storage
// with independent versions.
type Shared struct {
	marks  atomic.Uint64
	probes atomic.Int32 // open probes

	mu        sync.Mutex
	epoch     int                              // number of times that versions went back
	turned    chan struct{}                    // closed and replaced when they do
	recovered chan struct{}                    // closed and replaced at the end of an outage
	suspect   chan struct{}                    // has an entry if a connection failed since the last check started
	highest   map[schema.GroupResource]uint64  // versions seen in this epoch
	running   map[*Stream]schema.GroupResource // streams that have listed in this epoch
}

// Mark returns the next value of a counter that orders the observations and actions of
// a process: watch events on arrival, lists at their start, writes at their end. A
// clock would not do, because a list may take any time.
func (s *Shared) Mark() uint64 { return s.marks.Add(1) }

// maxProbes limits the concurrent probes of silent watches. A slow server must not get
// one from each of many streams.
const maxProbes = 8

// beginProbe reports whether a watch may be probed now. If so, the caller must call
// endProbe afterwards.
func (s *Shared) beginProbe() bool {
	if s.probes.Add(1) <= maxProbes {
		return true
	}
	s.probes.Add(-1)
	return false
}

func (s *Shared) endProbe() { s.probes.Add(-1) }

// lock locks mu and initializes the fields. The caller must unlock mu.
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

// after returns a channel that is closed when the epoch is over.
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

// outageEnds returns a channel that is closed when the server responds again after an
// outage.
func (s *Shared) outageEnds() <-chan struct{} {
	s.lock()
	defer s.mu.Unlock()
	return s.recovered
}

// reached returns the highest version of a resource seen in this epoch.
func (s *Shared) reached(of schema.GroupResource) uint64 {
	s.lock()
	defer s.mu.Unlock()
	return s.highest[of]
}

// passed records a version that a stream has seen in the epoch.
func (s *Shared) passed(epoch int, of schema.GroupResource, version uint64) {
	s.lock()
	defer s.mu.Unlock()
	if epoch == s.epoch && version > s.highest[of] {
		s.highest[of] = version
	}
}

// listed records the version of a complete list, and that the resource can be listed.
// floor is the highest version seen before the list started.
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

// ended removes a stream.
func (s *Shared) ended(from *Stream) {
	s.lock()
	defer s.mu.Unlock()
	delete(s.running, from)
}

// failed records a connection failure: the server may return with older data.
func (s *Shared) failed() {
	s.lock()
	defer s.mu.Unlock()
	select {
	case s.suspect <- struct{}{}:
	default:
	}
}

// wentBack starts a new epoch, unless that has happened already.
func (s *Shared) wentBack(epoch int, log *slog.Logger, now, seen uint64) {
	s.lock()
	defer s.mu.Unlock()
	if epoch != s.epoch {
		return
	}
	log.Warn("Resource versions of the API server went back, as after a restore from a backup; relisting everything.", "seen", seen, "now", now)
	s.epoch++
	close(s.turned)
	s.turned = make(chan struct{})
	clear(s.highest)
	clear(s.running)
}

const (
	// gatherTime is the time that a check waits for other streams to see the same
	// failure.
	gatherTime = 50 * time.Millisecond
	// checkInterval is the minimum interval of checks.
	checkInterval = time.Second
	// checkLimit limits the duration of a check.
	checkLimit = 5 * time.Second
	// maxOutagePause limits the pause between checks of an unreachable server,
	// maxOverloadPause of a server that returns errors.
	maxOutagePause   = time.Second
	maxOverloadPause = 5 * time.Second
)

// Run checks the server's version after each connection failure until ctx is done. When
// an outage ends, it also ends the pauses of all streams.
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
			if backoff.Sleep(ctx, gatherTime) != nil {
				return
			}
		}
		select {
		case <-suspect: // this check covers that failure as well
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
		if backoff.Sleep(ctx, pause) != nil {
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

// outagePause returns the pause after a failed check, with jitter.
func outagePause(failures int, err error, random jitter.Source) time.Duration {
	longest := maxOutagePause
	if _, answered := kube.Refused(err); answered {
		longest = maxOverloadPause
	}
	growing := backoff.Backoff{First: 100 * time.Millisecond, Most: longest}
	return max(random.Shorten(growing.After(failures+1), jitter.Slight), kube.RetryAfter(err))
}

// maxCandidates limits the resources that a check lists.
const maxCandidates = 3

// check reads the server's version with a list of at most one object. It returns an
// error if the server does not respond.
//
// A server that has just started may not serve all resources yet, so check tries
// others. But only the resource with the highest version can prove that nothing went
// back.
func (s *Shared) check(ctx context.Context, client *kube.Client, log *slog.Logger) (failed error) {
	epoch, candidates := s.candidates()
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		now, err := client.List(ctx, c.stream.Info, c.stream.Namespace, kube.ListOptions{Selector: c.stream.Selector, Fields: c.stream.Fields, Max: 1}, func(*object.Body) error { return nil })
		refusal, refused := kube.Refused(err)
		switch {
		case refused && refusal.Code < 500 && refusal.Code != http.StatusTooManyRequests:
			continue // it can no longer be listed; try another one
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
	version uint64 // the highest version seen
}

// candidates returns the resources that can be listed, highest version first.
func (s *Shared) candidates() (epoch int, all []candidate) {
	s.lock()
	defer s.mu.Unlock()
	streams := map[schema.GroupResource]*Stream{} // any stream of each resource
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
