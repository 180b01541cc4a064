package storage

// MalformedError tells that what was found on an object is nothing that could
// have been saved there: somebody else has written it. It is treated as if there
// were nothing.
type MalformedError struct {
	Where string // for example "annotation kopf.zalando.org/create_fn"
	Err   error
}

func (e *MalformedError) Error() string {
	return "what is stored in " + e.Where + " is malformed: " + e.Err.Error()
}
func (e *MalformedError) Unwrap() error { return e.Err }
