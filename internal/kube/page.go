package kube

import (
	"context"
	"net/http"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Page reads one page of a list: the first if page is empty, else the page that an
// earlier call returned as next. An empty next means that it was the last page.
//
// Unlike [Client.List] it keeps the whole page in memory and no connection open, so the
// caller may wait before requesting the next page. Since no object was delivered
// before, every failure is retried. A page that is requested too late fails with 410;
// its list metadata has a token to continue with newer data.
func (c *Client) Page(ctx context.Context, info kind.Info, ns string, o ListOptions, page string) (items []*object.Body, next string, err error) {
	query := o.query()
	if page != "" {
		query.Set("continue", page)
	}
	var meta listMeta
	err = c.do(ctx, &call{verb: "list", method: http.MethodGet, target: Target{Info: info, Namespace: ns}, query: query, repeatable: true,
		read: func(a *response) (err error) {
			items = items[:0]
			meta, err = c.readPage(a.Body, info, func(b *object.Body) error {
				items = append(items, b)
				return nil
			}, c.skipper(info, o.Skipped))
			return err
		}})
	if err != nil {
		return nil, "", err
	}
	return items, meta.Continue, nil
}
