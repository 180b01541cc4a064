package health

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"syscall"
)

// AddressError means that the server cannot listen at an address.
type AddressError struct {
	Address string
	For     string // the purpose, as users know it
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

// CheckURL returns an [*AddressError] if the URL of the probe endpoint is invalid. It
// does not listen there.
func CheckURL(text string) error {
	_, _, err := probeURL(text)
	return err
}

// CheckAddress returns an [*AddressError] if the address is invalid. The first argument
// is its purpose, for the message.
func CheckAddress(what, address string) error {
	if err := checkPort(address); err != nil {
		return &AddressError{address, what, "use something like :8080 or localhost:8080", err}
	}
	return nil
}

// LocalAddress returns the address with the host localhost if it has none, to keep it
// from other hosts. Invalid addresses are returned unchanged.
func LocalAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" {
		return address
	}
	return net.JoinHostPort("localhost", port)
}

// probeURL returns the address and the path of the probe endpoint. Default: localhost,
// port 80, path "/". As in Kopf, other parts of the URL are ignored.
func probeURL(text string) (address, path string, err error) {
	const advice = "use something like http://0.0.0.0:8080/healthz"
	refuse := func(err error) (string, string, error) {
		return "", "", &AddressError{text, "the probes", advice, err}
	}
	u, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the outer error repeats the address
		}
		return refuse(err)
	}
	if u.Scheme != "http" {
		return refuse(fmt.Errorf("the scheme is %q, but only http is supported", u.Scheme))
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

// checkPort rejects addresses for which net.Listen has less helpful errors. It also
// rejects service names instead of port numbers.
func checkPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		var inner *net.AddrError
		if errors.As(err, &inner) {
			return errors.New(inner.Err) // the whole error repeats the address
		}
		return err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not a port number", port)
	}
	return nil
}

// advise returns the remedy for a failure to listen, or an empty string.
func advise(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program or operator is listening there: stop it, or choose another port (0 picks a free one)"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 require privileges: choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: choose another host, or none for all addresses"
	}
	return ""
}
