package page

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"gopf.dev/gopf/internal/health"
)

// CheckAddress returns an error if the page must not be served at the address. An address
// without a host means localhost. Other hosts could read the page without any permission, so
// only loopback addresses are allowed, unless each request is authorized.
func CheckAddress(address string, authorized bool) error {
	if err := health.CheckAddress("the page", address); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(health.LocalAddress(address)) // it was checked
	if !authorized && !isLoopback(host) {
		return &health.AddressError{Address: address, For: "the page", Err: fmt.Errorf("%s is not a loopback address, and the page has no authentication", host),
			Advice: "use localhost, and reach it with kubectl port-forward; or require tokens with --insight-secure or Settings.Insight.Secure"}
	}
	return nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// refusal returns why a request must not be answered. "" means that it may be.
//
// A site can make its own name resolve to this machine, and the browser then lets it
// read the page. Such requests have that name in the header Host.
func refusal(req *http.Request, anyHost bool) string {
	host := req.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !anyHost && !isLoopback(strings.Trim(host, "[]")) {
		return "the page is served only as localhost; open it with that name"
	}
	switch req.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		if req.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return "requests of other sites are not allowed"
		}
	}
	return ""
}
