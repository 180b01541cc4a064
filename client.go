package gopf

import "k8s.io/client-go/rest"

// Client is how handlers reach the cluster, with the credentials of the
// operator.
type Client interface {
	// RESTConfig configures clients of any library that builds on client-go. There
	// is no limit of rates in it: their requests share the operator's limit of
	// requests under way. With an election, what they write is refused while
	// another replica works.
	RESTConfig() *rest.Config
}
