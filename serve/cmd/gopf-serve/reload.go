package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/serve"
)

// reloadInterval is the time between two checks of the files.
const reloadInterval = 500 * time.Millisecond

// runReload runs an operator for development until a signal arrives.
func runReload(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return reload(ctx, args, os.Stdout, os.Stderr)
}

// reload runs an operator, and restarts it when a file in its folder changes. While the file
// has mistakes, the former operator keeps running.
func reload(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	file, flags, install, err := serveArgs(args)
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n\n%s", err, usage)
		return 2
	}
	dir, base := split(file)
	seen := fingerprint(dir)
	for {
		op, err := serve.New(os.DirFS(dir), base, serve.Dir(dir))
		if err != nil {
			fmt.Fprintf(stderr, "%v\nThe operator does not run until the file is corrected.\n", err)
			if seen = changed(ctx, dir, seen); ctx.Err() != nil {
				return 1
			}
			continue
		}
		if install {
			installAtStartup(op, dir, base, flags)
		}
		running, end := context.WithCancel(ctx)
		done := make(chan int, 1)
		go func() { done <- cli.Run(running, op, append([]string{"run"}, flags...), stdout, stderr) }()
		next := make(chan [sha256.Size]byte, 1)
		go func() { next <- nextCorrect(running, dir, base, seen, stderr) }()
		select {
		case code := <-done:
			end()
			<-next
			return code
		case seen = <-next:
		}
		end()
		if code := <-done; ctx.Err() != nil || code != 0 {
			return code
		}
		fmt.Fprintln(stderr, "The files have changed; restarting the operator.")
	}
}

// nextCorrect waits for a change after which the file has no mistakes, or for the end of
// the context.
func nextCorrect(ctx context.Context, dir, base string, seen [sha256.Size]byte, stderr io.Writer) [sha256.Size]byte {
	for {
		if seen = changed(ctx, dir, seen); ctx.Err() != nil {
			return seen
		}
		err := serve.Check(os.DirFS(dir), base, serve.Dir(dir))
		if err == nil {
			return seen
		}
		fmt.Fprintf(stderr, "%v\nThe operator keeps running as before the change.\n", err)
	}
}

// changed waits until a file differs, or until the context is done.
func changed(ctx context.Context, dir string, seen [sha256.Size]byte) [sha256.Size]byte {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-ticker.C:
		}
		if now := fingerprint(dir); now != seen {
			return now
		}
	}
}

// fingerprint returns a digest of the names, sizes and times of the files in a folder.
func fingerprint(dir string) (sum [sha256.Size]byte) {
	hash := sha256.New()
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a file may disappear meanwhile
		}
		if d.IsDir() && path != dir && d.Name()[0] == '.' {
			return filepath.SkipDir
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			fmt.Fprintf(hash, "%s %d %d %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return nil
	})
	return [sha256.Size]byte(hash.Sum(nil))
}
