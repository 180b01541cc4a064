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
)

// pageAddress returns the listen address of the operator's page: that of the user's
// environment, or the first free one. An empty address means that there is none.
func pageAddress(ctx context.Context) string {
	if address, set := os.LookupEnv(insightVariable); set {
		return address
	}
	for port := firstPagePort; port <= lastPagePort; port++ {
		address := net.JoinHostPort("localhost", strconv.Itoa(port))
		if listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address); err == nil {
			_ = listener.Close() // the operator listens there
			return address
		}
	}
	return ""
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
