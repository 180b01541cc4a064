//go:build !linux

package kube

import (
	"net"
	"time"
)

// limitUnacknowledged does nothing: only Linux has the option in a portable form.
func limitUnacknowledged(*net.TCPConn, time.Duration) {}
