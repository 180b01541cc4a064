package lease

import (
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/object"
)

// record is what a Lease says.
type record struct {
	holder            string // "" if it is free
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

// released is the record of a lease that is given up. It has a duration
// because the server wants one.
func (r record) released(now time.Time) record {
	return record{duration: time.Second, acquired: now, renewed: now, transitions: r.transitions}
}

// sight is what is known of the lease.
type sight struct {
	record  record // as it was when it was last there
	version string // "" if it is not there
	at      time.Time
}

// look takes note of a record. What counts is when it was first seen.
func (s sight) look(r record, version string, now time.Time) sight {
	if r != s.record {
		s.record, s.at = r, now
	}
	s.version = version
	return s
}

// vanished takes note that there is no lease. Its last holder may still work.
func (s sight) vanished() sight {
	s.version = ""
	return s
}

// free tells whether somebody else may take the lease now, and otherwise when,
// unless it is renewed before. The holder's time is what it says, or ours if it
// says nothing.
func (s sight) free(now time.Time, duration time.Duration) (bool, time.Time) {
	if s.record.holder == "" {
		return true, now
	}
	if s.record.duration > 0 {
		duration = s.record.duration
	}
	expiry := s.at.Add(duration)
	return !now.Before(expiry), expiry
}

// holds tells whether the lease is held by the process that has taken it under
// that name and at that time. The name alone would not do: another process may
// have the same.
func (r record) holds(identity string, acquired time.Time) bool {
	return r.holder == identity && !acquired.IsZero() && r.acquired.Equal(acquired)
}

// timestamp is the time as a Lease can hold it.
func timestamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond).Round(0) }
