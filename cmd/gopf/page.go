package main

import (
	"context"
	"net"
	"os"
	"strconv"
)

// insightVariable is the variable of the operator's flag --insight. It is a variable, because
// operators that were built with an earlier version do not have the flag.
const insightVariable = "GOPF_RUN_INSIGHT"

// The ports of pages. They are below the ports that systems choose for connections, so the port stays
// free while the operator is replaced.
const (
	firstPagePort = 6080
	lastPagePort  = 6099

	// claimOffset is the distance between the port of a page and the port by which gopf dev
	// claims it. The operator does not listen until it is built, nor while it is replaced.
	claimOffset = 100
)

// pageAddress returns the listen address of the operator's page: the one in the user's
// environment, or the first free one. An empty address means that no page is served. No other
// gopf dev gets the same address before release is called.
func pageAddress(ctx context.Context) (address string, release func()) {
	if address, set := os.LookupEnv(insightVariable); set {
		return address, func() {}
	}
	listen := func(port int) (net.Listener, error) {
		return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
	}
	for port := firstPagePort; port <= lastPagePort; port++ {
		claim, err := listen(port + claimOffset)
		if err != nil {
			continue
		}
		if listener, err := listen(port); err == nil {
			_ = listener.Close() // the operator listens there
			return net.JoinHostPort("localhost", strconv.Itoa(port)), func() { _ = claim.Close() }
		}
		_ = claim.Close()
	}
	return "", func() {}
}

// environment returns the variables of the operator.
func (d *dev) environment(kubeconfig string) []string {
	env := []string{"KUBECONFIG=" + kubeconfig}
	if d.page != "" {
		env = append(env, insightVariable+"="+d.page)
	}
	return env
}

// link returns the URL of the page. Empty means that it is not known.
func (d *dev) link() string {
	host, port, err := net.SplitHostPort(d.page)
	if err != nil || port == "0" || d.fromFile {
		return ""
	}
	if host == "" {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}
