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

// listen opens the port of the API server: the wanted port, or the one stored in the folder,
// so its kubeconfig stays valid, or a free one. It stores the port in the folder.
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
		return nil, fmt.Errorf("port %d on 127.0.0.1 is in use; stop the program that uses it, or choose another --port", port)
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("port %d on 127.0.0.1, which the kubeconfig in %s refers to, is in use; stop the program that uses it, or choose another port for this cluster with --port", port, f.data)
	case err != nil:
		return nil, fmt.Errorf("open the API server's port: %w", err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if port != kept {
		if err := writeFile(f.path("port"), []byte(strconv.Itoa(port)+"\n")); err != nil {
			listener.Close()
			return nil, fmt.Errorf("store the port: %w", err)
		}
	}
	return listener, nil
}

// keptPort returns the port of the folder's last run, or 0 at the first run.
func keptPort(f *folder) (int, error) {
	text, err := os.ReadFile(f.path("port"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the stored port: %w", err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil {
		return 0, fmt.Errorf("read the stored port: %s does not contain a port; delete the file", f.path("port"))
	}
	return int(port), nil
}
