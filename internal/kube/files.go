package kube

import (
	"crypto/sha256"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// client-go reads token files about once a minute, and not earlier when a
// token is refused. Certificates of clients are read for each connection, so
// that those which are open keep the former ones; the authorities to trust are
// fixed when a transport is made. So when one of the files has changed, new
// connections are made, for new requests.

// filesCheck is how often the files are looked at for requests that succeed.
const filesCheck = time.Minute

// files are those of tokens, certificates, keys and authorities, at one
// moment.
type files struct {
	paths []string // none if all is given as data

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

// changed tells whether they have other contents now. They are not read more
// often than once in the duration. What cannot be read has not changed: it may
// just be about to.
func (f *files) changed(within time.Duration) bool {
	if len(f.paths) == 0 {
		return false
	}
	if !f.mu.TryLock() {
		return false // nobody waits for somebody who looks already
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

// current are the connections to use, which are made anew if their files have
// changed.
func (c *Client) current() *conns {
	conns := c.shared.conns.Load()
	if c.renew(conns, filesCheck) {
		return c.shared.conns.Load()
	}
	return conns
}

// renew makes new connections with the same credentials if the files behind
// them have changed, which is looked at once in the duration at most. It tells
// whether it did. Requests and watches on the former ones stay.
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
		c.opts.Log.Warn("The files of the credentials have changed, but cannot be used.", "files", old.files.paths, "error", err)
		return false
	}
	fresh.generation = old.generation
	c.shared.conns.Store(fresh)
	old.retire()
	c.opts.Log.Info("The files of the credentials have changed; new connections are made.", "files", old.files.paths)
	return true
}
