package peering

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// System provides the parts of an identity.
type System struct {
	LookupEnv func(name string) (string, bool)
	Hostname  func() (string, error)
	// Account returns the name of the account of the process. Containers often have
	// only a numeric id.
	Account func() (string, error)
	// Resolve returns the names and addresses of a host, best first.
	Resolve func(ctx context.Context, host string) ([]string, error)
}

// ThisSystem returns the system that the process runs on.
func ThisSystem() System {
	return System{LookupEnv: os.LookupEnv, Hostname: os.Hostname, Account: account, Resolve: resolve}
}

// Identity returns a name for this process: the value of POD_ID, or
// "user@host/20261115002445/43h" with the time and random characters. Each call returns
// another name unless POD_ID is set.
//
// An empty POD_ID is ignored: operators with the same identity would not see each other.
func (s System) Identity(ctx context.Context, now time.Time) string {
	if id, _ := s.LookupEnv("POD_ID"); id != "" {
		return id
	}
	const alphabet = "abcdefhijklmnopqrstuvwxyz0123456789" // same as Kopf's
	var random [3]byte
	for i := range random {
		random[i] = alphabet[rand.N(len(alphabet))]
	}
	return s.Person(ctx) + "/" + now.UTC().Format("20060102150405") + "/" + string(random[:])
}

// Person returns a stable name for the user: "user@host", or the value of POD_ID. It is
// the default identity for [Freeze] and [Resume].
func (s System) Person(ctx context.Context) string {
	if id, _ := s.LookupEnv("POD_ID"); id != "" {
		return id
	}
	return s.user() + "@" + s.host(ctx)
}

func (s System) user() string {
	for _, name := range []string{"LOGNAME", "USER", "LNAME", "USERNAME"} {
		if v, _ := s.LookupEnv(name); v != "" {
			return v
		}
	}
	if name, err := s.Account(); err == nil && name != "" {
		return name
	}
	return strconv.Itoa(os.Getuid())
}

// resolving limits the lookup of host names. They are only informative, and a broken
// resolver must not delay the operator.
const resolving = 2 * time.Second

func (s System) host(ctx context.Context) string {
	raw, err := s.Hostname()
	if err != nil || raw == "" {
		raw = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	names, err := s.Resolve(ctx, raw)
	if err != nil {
		names = nil
	}
	return DescriptiveHostname(raw, names)
}

// DescriptiveHostname returns the most descriptive name of a host: the first with dots,
// else the first that is not "localhost", else raw. It ignores addresses and names of
// reverse zones, and strips suffixes of local networks.
func DescriptiveHostname(raw string, names []string) string {
	chosen := raw
	if name, ok := first(names, func(n string) bool { return strings.Contains(n, ".") }); ok {
		chosen = name
	} else if name, ok := first(names, func(n string) bool { return n != "localhost" }); ok {
		chosen = name
	}
	for {
		rest, local := strings.CutSuffix(chosen, ".local")
		if !local {
			rest, local = strings.CutSuffix(chosen, ".localdomain")
		}
		if !local {
			return chosen
		}
		chosen = rest
	}
}

func first(names []string, good func(string) bool) (string, bool) {
	for _, n := range names {
		if _, err := netip.ParseAddr(n); err != nil && n != "" && !strings.HasSuffix(n, ".arpa") && good(n) {
			return n, true
		}
	}
	return "", false
}

func account() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// resolve looks up the canonical name of a host, the names of its first address, and
// its addresses.
func resolve(ctx context.Context, host string) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var names []string
	if canonical, err := net.DefaultResolver.LookupCNAME(ctx, host); err == nil {
		names = append(names, strings.TrimSuffix(canonical, "."))
	}
	if len(addresses) > 0 {
		if aliases, err := net.DefaultResolver.LookupAddr(ctx, addresses[0]); err == nil {
			for _, a := range aliases {
				names = append(names, strings.TrimSuffix(a, "."))
			}
		}
	}
	return append(names, addresses...), nil
}
