package gopftest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// get returns the current state of an object.
func (s *scope) get() (*entry, error) {
	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	e, ok := s.table().objects[s.key()]
	if !ok {
		return nil, s.notFound()
	}
	return e, nil
}

// page is a list, or one page of it.
type page struct {
	metav1.ListMeta
	items []*entry
}

// continuation is the decoded continue token of a page.
type continuation struct {
	Format  string `json:"v"`
	Version int64  `json:"rv"` // -1: the current version
	Start   string `json:"start"`
}

// The texts of the real API server, which clients show.
const (
	continueFormat  = "meta.k8s.io/v1"
	continueExpired = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response " +
		"to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
	listExpired = "The resourceVersion for the provided list is too old."
)

// list returns the selected objects, or one page of them. All pages of a list show
// the same version.
func (s *scope) list(ctx context.Context, options *internalversion.ListOptions) (*page, error) {
	sel, err := s.selection(options)
	if err != nil {
		return nil, err
	}
	version, after, err := s.moment(ctx, options)
	if err != nil {
		return nil, err
	}

	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	if version <= 0 {
		version = s.store().version
	}
	t := s.table()
	if version < max(s.store().compacted, t.dropped) {
		return nil, expired(after)
	}
	p := &page{items: []*entry{}}
	p.ResourceVersion = fmt.Sprint(version)
	items := slices.DeleteFunc(t.at(version), func(e *entry) bool { return !sel.has(e) || after != nil && e.key.compare(*after) <= 0 })
	if limit := int(options.Limit); limit > 0 && len(items) > limit {
		p.Continue = token(version, items[limit-1].key)
		if sel.everything() {
			p.RemainingItemCount = new(int64(len(items) - limit))
		}
		items = items[:limit]
	}
	p.items = append(p.items, items...)
	return p, nil
}

// moment returns the version to show, 0 for the newest, and the key to start after. It
// waits a little for a version that is not reached yet.
func (s *scope) moment(ctx context.Context, options *internalversion.ListOptions) (int64, *objectKey, error) {
	if options.Continue != "" {
		return parseToken(options)
	}
	asked, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return 0, nil, apierrors.NewBadRequest("invalid resource version: " + badVersion(options.ResourceVersion, err).Error())
	}
	if asked == 0 {
		return 0, nil, nil
	}
	if err := s.await(ctx, asked); err != nil {
		return 0, nil, err
	}
	// With a limit, a version without a match rule means exactly that version.
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact || options.ResourceVersionMatch == "" && options.Limit > 0 {
		return asked, nil, nil
	}
	return 0, nil, nil
}

// await waits until the version is reached, as long as the real API server does.
func (s *scope) await(ctx context.Context, version int64) error {
	const patience, pause = 3 * time.Second, 50 * time.Millisecond
	for start := time.Now(); ; {
		current := s.store().current()
		switch {
		case current >= version:
			return nil
		case time.Since(start) >= patience:
			return errTooLarge(version, current)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// token returns a continue token for the version and the last object of a page.
func token(version int64, last objectKey) string {
	return base64.RawURLEncoding.EncodeToString(encode(continuation{continueFormat, version, last.namespace + "/" + last.name}))
}

func parseToken(options *internalversion.ListOptions) (int64, *objectKey, error) {
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return 0, nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	bad := func(err error) error {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	raw, err := base64.RawURLEncoding.DecodeString(options.Continue)
	if err != nil {
		return 0, nil, bad(err)
	}
	var c continuation
	if err := json.Unmarshal(raw, &c); err != nil {
		return 0, nil, bad(err)
	}
	if c.Format != continueFormat {
		return 0, nil, bad(fmt.Errorf("server does not recognize this encoded version %q", c.Format))
	}
	after := parseKey(c.Start)
	return c.Version, &after, nil
}

// expired is the error for a version that is no longer available. For a page, it
// contains a token that continues from the present state.
func expired(after *objectKey) error {
	if after == nil {
		return apierrors.NewResourceExpired(listExpired)
	}
	err := apierrors.NewResourceExpired(continueExpired)
	err.ErrStatus.ListMeta.Continue = token(-1, *after)
	return err
}
