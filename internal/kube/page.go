package kube

import (
	"context"
	"net/http"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Page reads one page of a list: the first one, or that which the former one
// was followed by. No next one is the end.
//
// Unlike [Client.List] it keeps all of the page in memory and no connection
// open, so that the caller may take any time before it asks for the next one;
// and since nothing was handed on before, every failure is retried. A page that
// is asked for too late is answered with a 410, which tells in its list metadata
// where to go on in newer state.
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
