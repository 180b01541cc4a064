package gopftest_test

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"
)

// The resolver reads its configuration again after 5 seconds.
func TestLookupsWorkAfterThoseOfABubble(t *testing.T) {
	const alone = "GOPFTEST_LOOKUPS"
	if os.Getenv(alone) == "" { // other tests may have looked up names before
		t.Parallel()
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		self.Env = append(os.Environ(), alone+"=1")
		if text, err := self.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) { _, _ = net.DefaultResolver.LookupHost(t.Context(), "localhost") })
	time.Sleep(6 * time.Second)
	_, _ = net.DefaultResolver.LookupHost(t.Context(), "localhost")
}
