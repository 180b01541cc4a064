package health

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"syscall"
)

// AddressError tells that an address cannot be served, and what to do.
type AddressError struct {
	Address string
	For     string // what was to be served there, as users know it
	Advice  string // a part of a sentence; may be empty
	Err     error
}

func (e *AddressError) Error() string {
	text := fmt.Sprintf("serve %s at %q: %v", e.For, e.Address, e.Err)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

func (e *AddressError) Unwrap() error { return e.Err }

// CheckURL tells what is wrong with the URL of the probe endpoint, as far as that
// can be known without listening there.
func CheckURL(text string) error {
	_, _, err := probeURL(text)
	return err
}

// CheckAddress tells the same of an address for something else.
func CheckAddress(what, address string) error {
	if err := checkPort(address); err != nil {
		return &AddressError{address, what, "say something like :8080 or localhost:8080", err}
	}
	return nil
}

// LocalAddress returns the address with the host localhost if it has none: what is
// served there is not for other hosts. Addresses that cannot be read stay as they
// are.
func LocalAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" {
		return address
	}
	return net.JoinHostPort("localhost", port)
}

// probeURL takes the URL of the probe endpoint apart: the address to listen on,
// and the one path that is served. The host is localhost if there is none, the
// port 80, the path "/". As in Kopf, what else a URL may have is ignored.
func probeURL(text string) (address, path string, err error) {
	const advice = "say something like http://0.0.0.0:8080/healthz"
	refuse := func(err error) (string, string, error) {
		return "", "", &AddressError{text, "the probes", advice, err}
	}
	u, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the outer one repeats the address
		}
		return refuse(err)
	}
	if u.Scheme != "http" {
		return refuse(fmt.Errorf("the scheme is %q, and only http is supported", u.Scheme))
	}
	if u.Opaque != "" {
		return refuse(errors.New("two slashes are missing after the scheme"))
	}
	host, port, path := u.Hostname(), u.Port(), u.Path
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "80"
	}
	if path == "" {
		path = "/"
	}
	address = net.JoinHostPort(host, port)
	if err := checkPort(address); err != nil {
		return refuse(err)
	}
	return address, path, nil
}

// checkPort refuses what net.Listen would refuse with fewer words, or would
// understand in another way: names of services.
func checkPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		var inner *net.AddrError
		if errors.As(err, &inner) {
			return errors.New(inner.Err) // the whole one repeats the address
		}
		return err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not the number of a port", port)
	}
	return nil
}

// advise tells what can be done about a failure to listen.
func advise(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program, or another operator, listens there: stop it, or choose another port (0 picks a free one)"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need privileges: choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: choose another host, or none for all addresses"
	}
	return ""
}
