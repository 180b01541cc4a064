package login

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// tend does what is to be done now, and returns when to look again if nothing
// happens before; zero for never.
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
		return time.Now() // to see how that went
	case fresh:
		v.login(ctx, client)
		return time.Now()
	}
	return at
}

// need is what a vault must do.
type need int

const (
	nothing need = iota
	another      // use others that are there
	fresh        // log in
)

// judge decides what to do now, or else when to look again.
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
	// Of the logins in a row, the first is made at once.
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

// loginPause is how long to wait after n logins in a row that did not help.
func loginPause(n int) time.Duration {
	const first, most = time.Second, time.Minute
	switch {
	case n == 0:
		return 0
	case n > 6:
		return most
	}
	return min(first<<(n-1), most)
}

// quiet is how long it takes after a login until the next one is not one in a
// row any more.
const quiet = 2 * time.Minute

// login makes another login and uses what it brings.
func (v *Vault) login(ctx context.Context, client *kube.Client) {
	v.mu.Lock()
	if time.Since(v.last) > quiet {
		v.rounds = 0
	}
	v.rounds++
	v.rest = v.cfg.Jitter.Shorten(loginPause(v.rounds), jitter.Slight)
	level := slog.LevelInfo
	if v.rounds > 1 {
		level = slog.LevelDebug // it was told
	}
	v.mu.Unlock()

	v.cfg.Log.Log(ctx, level, "Re-authentication has been initiated.")
	found, err := v.cfg.Login(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		v.cfg.Log.Error("The login has failed; it is tried again.", "error", err)
	} else if len(found) == 0 {
		v.cfg.Log.Warn("The login brought no credentials; it is tried again.")
	}
	v.mu.Lock()
	v.last = time.Now()
	v.store.expire(v.last)
	refused := v.store.populate(found, v.last)
	chosen := v.store.choose(v.current, v.cfg.Random)
	if chosen == nil && !v.store.has(v.current) {
		// The current ones may have been accepted meanwhile; if not, those are
		// tried again which were refused.
		chosen = nextInTurn(refused, v.current)
		if chosen != nil && v.current.refused && chosen.mark == v.current.mark {
			chosen = v.current // the client is trying already
		}
	}
	v.mu.Unlock()
	v.cfg.Log.Log(ctx, level, "Re-authentication has finished.")
	v.use(client, chosen)
}

// switchOver uses others that are there, and of those that are equal any.
func (v *Vault) switchOver(client *kube.Client) {
	v.mu.Lock()
	chosen := v.store.choose(v.current, v.cfg.Random)
	v.mu.Unlock()
	v.use(client, chosen)
}

// use makes the client use the credentials, unless it does already.
func (v *Vault) use(client *kube.Client, chosen *item) {
	v.mu.Lock()
	former := v.current
	_, held := v.status.Err.(*ExpiredError)
	if chosen == nil || chosen == former && !held {
		v.mu.Unlock()
		return
	}
	// Noted before the client may complain about them.
	v.current = chosen
	v.store.items[chosen.id] = chosen
	if held {
		v.setStatus(nil)
	}
	v.mu.Unlock()
	if err := client.Use(chosen.creds.Config); err != nil {
		v.cfg.Log.Error("The credentials cannot be used.", "login", chosen.id, "error", err)
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
	v.cfg.Log.Info("Other credentials are used now.", "login", chosen.id)
}
