package serve

import (
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/serve/spec"
)

// decodeSettings decodes the settings of the file, and checks them: an operator would refuse
// some of them only when it runs, and without a line.
func decodeSettings(node spec.Node, s *gopf.Settings, problems *spec.Problems) {
	before := len(*problems)
	node.DecodeInto(s, problems, "peering.priority", "posting.level")
	if len(*problems) > before || !node.Present() {
		return
	}
	if at, ok := node.At("peering", "lifetime"); ok && !s.Peering.Standalone && s.Peering.Lifetime < time.Second {
		problems.Add(at, "peering.lifetime is %s; use at least 1s", s.Peering.Lifetime)
	}
	if at, ok := node.At("networking", "requestTimeout"); ok && s.Networking.RequestTimeout == 0 {
		problems.Warn(at, "networking.requestTimeout is 0, so a request may wait forever; use a duration such as 30s")
	}
	e := s.Election
	if at, ok := node.At("election"); ok && e.Enabled && (e.RetryPeriod <= 0 || e.RenewDeadline < 2*e.RetryPeriod || e.Duration <= e.RenewDeadline || e.Duration < time.Second) {
		problems.Add(at, "election has a duration of %s, a renewDeadline of %s and a retryPeriod of %s; "+
			"the duration must be at least 1s and longer than the renewDeadline, which must be at least twice the retryPeriod", e.Duration, e.RenewDeadline, e.RetryPeriod)
	}
}
