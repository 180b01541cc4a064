package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// listen opens the API server's port: the wanted one, or else the one stored in the
// folder, which keeps its kubeconfig valid, or else a free one. It stores the port.
func listen(f *folder, wanted int) (net.Listener, error) {
	kept, err := keptPort(f)
	if err != nil {
		return nil, err
	}
	port := wanted
	if port == 0 {
		port = kept
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, unix.EADDRINUSE) && port == wanted:
		return nil, fmt.Errorf("port %d on 127.0.0.1 is taken: stop the program that uses it, or give another --port", port)
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("port %d on 127.0.0.1, which the kubeconfig in %s names, is taken: stop the program that uses it, or move this cluster with --port", port, f.data)
	case err != nil:
		return nil, fmt.Errorf("open the API server's port: %w", err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if port != kept {
		if err := writeFile(f.path("port"), []byte(strconv.Itoa(port)+"\n")); err != nil {
			listener.Close()
			return nil, fmt.Errorf("keep the port: %w", err)
		}
	}
	return listener, nil
}

// keptPort returns the port of the folder's last run. 0 means that there was none.
func keptPort(f *folder) (int, error) {
	text, err := os.ReadFile(f.path("port"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the kept port: %w", err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil {
		return 0, fmt.Errorf("read the kept port: %s does not contain a port: delete it", f.path("port"))
	}
	return int(port), nil
}
