package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// slowAPI accepts only the token "good", after some time.
type slowAPI struct {
	reviews atomic.Int64
	takes   time.Duration
}

func (a *slowAPI) Create(ctx context.Context, _ kube.Target, body []byte, _ ...kube.Param) (*object.Body, error) {
	a.reviews.Add(1)
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	good := strings.Contains(string(body), "good")
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"authenticated": good, "allowed": good, "user": map[string]any{"username": "good"}}})
	if err != nil {
		return nil, err
	}
	return object.Parse(raw)
}

func TestAFloodOfRandomTokensBlocksNoOtherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, api := New(nil), &slowAPI{takes: 200 * time.Millisecond}
		g.Use(api)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 255 {
			go func() {
				for n := 0; ctx.Err() == nil; n++ {
					g.judge(ctx, "10.0.0.66", fmt.Sprint("random ", i, n), "/metrics")
					select { // a new connection takes some time
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			}()
		}
		time.Sleep(100 * time.Second)
		if n := api.reviews.Load(); n > 100*ofPeer {
			t.Errorf("%d reviews in 100 s", n)
		}
		for range 3 {
			began := time.Now()
			if v := g.judge(ctx, "10.0.0.7", "good", "/metrics"); v != allowed {
				t.Errorf("the verdict about the other client is %d after %s", v, time.Since(began))
			}
			time.Sleep(2 * allowedFor)
		}
		cancel()
		synctest.Wait()
		if len(g.peers) != 0 {
			t.Errorf("left behind: %v", g.peers)
		}
	})
}
