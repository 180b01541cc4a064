package gopf

import "reflect"

// Memo returns the value of type M that is kept in memory with the object for as
// long as it exists and the process runs. It is zero at first, and shared by all
// handlers of the object: if daemons or timers use it, too, give M a mutex or
// atomic fields.
func Memo[M any](of interface{ memo(reflect.Type) any }) *M {
	return of.memo(reflect.TypeFor[M]()).(*M)
}

func (s *Subject[T]) memo(t reflect.Type) any { return s.req.Memos.Get(t) }
