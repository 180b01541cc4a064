package gopftest

// standaloneSuffix is part of the version that standalone clusters report. It keeps users
// from mistaking one for a real cluster.
const standaloneSuffix = "-gopf-in-memory"

// NewStandalone returns an in-memory cluster that belongs to no test, for programs that
// serve its [Cluster.Handler]. It serves all well-known kinds, and answers access reviews,
// as "kubectl auth can-i" needs them. It keeps no log of requests. Its version ends with
// "-gopf-in-memory". The caller must call [Cluster.Close] at the end.
func NewStandalone() *Cluster {
	c := newMemory(func(b *builtin) bool { return !b.custom })
	c.alone = true
	c.requests.forgetful = true
	return c
}

// Close ends all requests and watches of a cluster of [NewStandalone], and waits for them.
// Clusters of tests are closed when their test ends.
func (c *Cluster) Close() { c.close() }
