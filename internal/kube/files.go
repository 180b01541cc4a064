package kube

import (
	"crypto/sha256"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// client-go reads token files about once a minute, but not earlier if a token is
// rejected. It reads client certificates for each new connection, so open connections
// keep the previous ones. It fixes the trusted authorities when a transport is created.
// Therefore new connections replace the old ones when one of these files changes.

// filesCheck is the interval of checking the files while requests succeed.
const filesCheck = time.Minute

// files are the files with tokens, certificates, keys and authorities, with a digest of
// their contents.
type files struct {
	paths []string // empty if all credentials are inline data

	mu      sync.Mutex
	digest  [sha256.Size]byte
	checked time.Time
}

func (f *files) note(cfg *rest.Config) {
	if cfg.BearerTokenFile != "" {
		f.paths = append(f.paths, cfg.BearerTokenFile)
	}
	t := cfg.TLSClientConfig
	for _, from := range []struct {
		path string
		data []byte
	}{{t.CAFile, t.CAData}, {t.CertFile, t.CertData}, {t.KeyFile, t.KeyData}} {
		if from.path != "" && len(from.data) == 0 {
			f.paths = append(f.paths, from.path)
		}
	}
	if len(f.paths) > 0 {
		f.digest, _ = digest(f.paths)
		f.checked = time.Now()
	}
}

// changed reports whether the contents of the files have changed. It reads them at most
// once per within. Unreadable files count as unchanged: they may be in the middle of an
// update.
func (f *files) changed(within time.Duration) bool {
	if len(f.paths) == 0 {
		return false
	}
	if !f.mu.TryLock() {
		return false // another goroutine is checking already
	}
	defer f.mu.Unlock()
	if time.Since(f.checked) < within {
		return false
	}
	f.checked = time.Now()
	now, ok := digest(f.paths)
	return ok && now != f.digest
}

func digest(paths []string) (sum [sha256.Size]byte, ok bool) {
	all := sha256.New()
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return sum, false
		}
		one := sha256.Sum256(content)
		all.Write(one[:])
	}
	all.Sum(sum[:0])
	return sum, true
}

// current returns the connections to use. It replaces them first if their files have
// changed.
func (c *Client) current() *conns {
	conns := c.shared.conns.Load()
	if c.renew(conns, filesCheck) {
		return c.shared.conns.Load()
	}
	return conns
}

// renew replaces the connections, with the same credentials, if the files behind them
// have changed. It checks the files at most once per within. It reports whether the
// connections were replaced. Requests and watches on the old connections continue.
func (c *Client) renew(old *conns, within time.Duration) bool {
	if !old.files.changed(within) {
		return false
	}
	c.shared.using.Lock()
	defer c.shared.using.Unlock()
	if old.isReplaced() {
		return true
	}
	fresh, err := connect(old.given, c.shared.opts)
	if err != nil {
		c.opts.Log.Warn("The files of the credentials have changed but cannot be used.", "files", old.files.paths, "error", err)
		return false
	}
	fresh.generation = old.generation
	c.shared.conns.Store(fresh)
	old.retire()
	c.opts.Log.Info("The files of the credentials have changed; reconnecting.", "files", old.files.paths)
	return true
}
