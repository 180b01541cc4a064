package execute

import "gopf.dev/gopf/internal/panics"

// PanicStack returns the stack of a panic that is being recovered, with the user's
// frames first; see [panics.Stack].
func PanicStack() []byte { return panics.Stack() }
