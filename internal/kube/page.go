package kube

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Page reads one page of a list: the first if page is empty, else the page that an
// earlier call returned as next. An empty next means that it was the last page.
//
// Unlike [Client.List] it keeps the whole page in memory and no connection open, so the
// caller may wait before requesting the next page. A page of more than [LargePage] has fewer
// objects than requested: it is requested again with as many as fit, one at least. Since no
// object was delivered before, every failure is retried. A page that is requested too late
// fails with 410; its list metadata has a token to continue with newer data.
func (c *Client) Page(ctx context.Context, info kind.Info, ns string, o ListOptions, page string) (items []*object.Body, next string, err error) {
	query := o.query()
	if page != "" {
		query.Set("continue", page)
	}
	var meta listMeta
	var tooLarge bool
	most := 0 // the number of objects that fit; 0 means unknown
	for {
		items, tooLarge = nil, false // a request may fail before its response is read
		err = c.do(ctx, &call{verb: "list", method: http.MethodGet, target: Target{Info: info, Namespace: ns}, query: query, repeatable: true,
			read: func(a *response) (err error) {
				size := 0
				items, tooLarge = nil, false
				meta, err = c.readPage(a.Body, info, func(b *object.Body) error {
					ignored := most > 0 && len(items) >= most // some extension API servers ignore the limit
					if size += b.Size(); size > LargePage && len(items) > 0 && !ignored {
						tooLarge = true
						return errLargePage
					}
					items = append(items, b)
					return nil
				}, c.skipper(info, o.Skipped))
				return err
			}})
		switch {
		case tooLarge:
			most = len(items)
			query.Set("limit", strconv.Itoa(most))
		case err != nil:
			return nil, "", err
		default:
			return items, meta.Continue, nil
		}
	}
}

// LargePage limits the JSON of the objects of a page, in bytes, because clients of the cluster
// choose how large objects are.
const LargePage = 1 << 20

var errLargePage = errors.New("the page is too large")
