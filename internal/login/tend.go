package login

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// tend does the work that is due, and returns when to check again if nothing happens
// before. Zero means never.
func (v *Vault) tend(ctx context.Context, client *kube.Client) time.Time {
	v.mu.Lock()
	need, at := v.judge(time.Now())
	var expired error
	if need != another && !v.current.refused && !v.store.has(v.current) && v.status.Err == nil {
		expired = &ExpiredError{v.current.creds.Expires}
		v.setStatus(expired)
	}
	v.mu.Unlock()
	if expired != nil {
		client.Hold(expired)
	}
	switch need {
	case another:
		v.switchOver(client)
		return time.Now() // check the result
	case fresh:
		v.login(ctx, client)
		return time.Now()
	}
	return at
}

// need is the next action of a vault.
type need int

const (
	nothing need = iota
	another      // use other stored credentials
	fresh        // log in
)

// judge decides what to do now, or when to check again.
func (v *Vault) judge(now time.Time) (need, time.Time) {
	v.store.expire(now)
	good := v.store.has(v.current)
	renewal := v.current.renewal()
	switch {
	case good && (renewal.IsZero() || now.Before(renewal)):
		return nothing, renewal
	case !good && v.store.choose(nil, first) != nil:
		return another, time.Time{}
	}
	// The first of several logins in a row has no pause.
	next := v.last.Add(min(v.rest, loginPause(v.rounds)))
	if now.Before(next) {
		if good && v.current.creds.Expires.Before(next) {
			next = v.current.creds.Expires
		}
		return nothing, next
	}
	return fresh, time.Time{}
}

func first(int) int { return 0 }

// loginPause returns the pause after n useless logins in a row.
func loginPause(n int) time.Duration {
	return backoff.Backoff{First: time.Second, Most: time.Minute}.After(n)
}

// quiet is the time after a login from which the next one no longer counts as one in a
// row.
const quiet = 2 * time.Minute

// login logs in again and uses the result.
func (v *Vault) login(ctx context.Context, client *kube.Client) {
	v.mu.Lock()
	if time.Since(v.last) > quiet {
		v.rounds = 0
	}
	v.rounds++
	v.rest = v.cfg.Jitter.Shorten(loginPause(v.rounds), jitter.Slight)
	level := slog.LevelInfo
	if v.rounds > 1 {
		level = slog.LevelDebug // the first one was logged
	}
	v.mu.Unlock()

	v.cfg.Log.Log(ctx, level, "Re-authentication has been initiated.")
	found, err := v.cfg.Login(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		v.cfg.Log.Error("The login failed; retrying.", "error", err)
	} else if len(found) == 0 {
		v.cfg.Log.Warn("The login returned no credentials; retrying.")
	}
	v.mu.Lock()
	v.last = time.Now()
	v.store.expire(v.last)
	refused := v.store.populate(found, v.last)
	chosen := v.store.choose(v.current, v.cfg.Random)
	if chosen == nil && !v.store.has(v.current) {
		// The current credentials may have been accepted meanwhile. If not, retry those
		// that were rejected.
		chosen = nextInTurn(refused, v.current)
		if chosen != nil && v.current.refused && chosen.mark == v.current.mark {
			chosen = v.current // the client is retrying already
		}
	}
	v.mu.Unlock()
	v.cfg.Log.Log(ctx, level, "Re-authentication has finished.")
	v.use(client, chosen)
}

// switchOver switches to other stored credentials.
func (v *Vault) switchOver(client *kube.Client) {
	v.mu.Lock()
	chosen := v.store.choose(v.current, v.cfg.Random)
	v.mu.Unlock()
	v.use(client, chosen)
}

// use switches the client to the credentials, unless it uses them already.
func (v *Vault) use(client *kube.Client, chosen *item) {
	v.mu.Lock()
	former := v.current
	_, held := v.status.Err.(*ExpiredError)
	if chosen == nil || chosen == former && !held {
		v.mu.Unlock()
		return
	}
	// Set this first: the client may call Unauthorized at once.
	v.current = chosen
	v.store.items[chosen.id] = chosen
	if held {
		v.setStatus(nil)
	}
	v.mu.Unlock()
	if err := client.Use(chosen.creds.Config); err != nil {
		v.cfg.Log.Error("Cannot use the credentials.", "login", chosen.id, "error", err)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.store.invalidate(chosen)
		v.current = former
		if !former.refused && !former.expired(time.Now()) {
			v.store.items[former.id] = former
		}
		if held {
			v.setStatus(&ExpiredError{former.creds.Expires})
		}
		return
	}
	v.cfg.Log.Info("Switched to other credentials.", "login", chosen.id)
}
