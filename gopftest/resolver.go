package gopftest

import (
	"context"
	"net"
	"time"
)

// The resolver of package net keeps a channel that it creates at its first lookup. An operator
// looks up the name of its host. If it is the first one to do so, and runs in a bubble of
// testing/synctest, a later lookup outside of that bubble ends the process. So the first
// lookup is here, before all bubbles.
func init() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = net.DefaultResolver.LookupHost(ctx, "localhost") // the result does not matter
}
