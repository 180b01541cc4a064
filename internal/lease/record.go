package lease

import (
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/object"
)

// record is the content of a Lease.
type record struct {
	holder            string // empty if it is free
	duration          time.Duration
	acquired, renewed time.Time // by the holder's clock
	transitions       int32
}

func parse(b *object.Body) (r record, err error) {
	var l coordinationv1.Lease
	if err := b.Decode(&l); err != nil {
		return r, fmt.Errorf("read the lease: %w", err)
	}
	if v := l.Spec.HolderIdentity; v != nil {
		r.holder = *v
	}
	if v := l.Spec.LeaseDurationSeconds; v != nil {
		r.duration = time.Duration(*v) * time.Second
	}
	if v := l.Spec.AcquireTime; v != nil {
		r.acquired = v.UTC()
	}
	if v := l.Spec.RenewTime; v != nil {
		r.renewed = v.UTC()
	}
	if v := l.Spec.LeaseTransitions; v != nil {
		r.transitions = *v
	}
	return r, nil
}

func (r record) spec() coordinationv1.LeaseSpec {
	seconds := int32(min(math.Ceil(r.duration.Seconds()), math.MaxInt32))
	return coordinationv1.LeaseSpec{
		HolderIdentity:       &r.holder,
		LeaseDurationSeconds: &seconds,
		AcquireTime:          &metav1.MicroTime{Time: r.acquired},
		RenewTime:            &metav1.MicroTime{Time: r.renewed},
		LeaseTransitions:     &r.transitions,
	}
}

// released returns the record of a released lease. It has a duration because the API
// server requires one.
func (r record) released(now time.Time) record {
	return record{duration: time.Second, acquired: now, renewed: now, transitions: r.transitions}
}

// sight is the last known state of the lease.
type sight struct {
	record  record // as of when the lease last existed
	version string // empty if it does not exist
	at      time.Time
}

// look records a state of the lease. at is the time at which the record was first seen.
func (s sight) look(r record, version string, now time.Time) sight {
	if r != s.record {
		s.record, s.at = r, now
	}
	s.version = version
	return s
}

// vanished records that the lease does not exist. Its last holder may still work.
func (s sight) vanished() sight {
	s.version = ""
	return s
}

// free reports whether another replica may take the lease now. Otherwise it returns
// when, unless the lease is renewed before. duration applies if the record has none.
func (s sight) free(now time.Time, duration time.Duration) (bool, time.Time) {
	if s.record.holder == "" {
		return true, now
	}
	expiry := s.at.Add(believed(s.record.duration, duration))
	return !now.Before(expiry), expiry
}

// longestForeign limits the duration that a candidate believes. Any client that may
// write the Lease may claim a duration of decades, and all candidates would obey.
const longestForeign = 10 * time.Minute

// believed returns how long a candidate waits for a holder that claims the duration. own
// is the candidate's configured duration. It applies if the record has none. Candidates
// wait at most [longestForeign], or ten times their own duration if that is longer.
func believed(claimed, own time.Duration) time.Duration {
	if claimed <= 0 {
		return own
	}
	return min(claimed, max(longestForeign, own, 10*own)) // 10*own may overflow
}

// holds reports whether the lease is held by the process that took it with this
// identity at this time. The identity is not enough, because another process may have
// the same.
func (r record) holds(identity string, acquired time.Time) bool {
	return r.holder == identity && !acquired.IsZero() && r.acquired.Equal(acquired)
}

// timestamp returns the time with the precision of a Lease.
func timestamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond).Round(0) }
