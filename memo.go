package gopf

import "reflect"

// Memo returns the value of type M that belongs to the object of the handler. It is
// kept in memory as long as the object exists and the process runs; it is lost on
// restarts. It is initially zero, and never nil.
//
// All handlers of the object share it. Daemons and timers run concurrently with other
// handlers: if they use it, give M a mutex or atomic fields.
func Memo[M any](of interface{ memo(reflect.Type) any }) *M {
	return of.memo(reflect.TypeFor[M]()).(*M)
}

func (s *Subject[T]) memo(t reflect.Type) any { return s.req.Memos.Get(t) }
