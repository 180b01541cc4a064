package webhook_test

import (
	"context"
	"fmt"
	"net/http"

	"gopf.dev/gopf/webhook"
)

// A tunnel runs a server on this machine, and announces its public address instead of
// that of the server.
type tunnel struct {
	local  webhook.Local
	public string
}

func (t tunnel) Serve(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
	return t.local.Serve(ctx, reviews, func(c webhook.ClientConfig) {
		// Here, create the tunnel from t.public to c.URL.
		announce(webhook.ClientConfig{URL: t.public})
	})
}

func Example_tunnel() {
	ctx, cancel := context.WithCancel(context.Background())
	var server webhook.Server = tunnel{local: webhook.Local{Insecure: true}, public: "https://hooks.example.com"}
	err := server.Serve(ctx, http.NotFoundHandler(), func(c webhook.ClientConfig) {
		fmt.Println(c.URL)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// https://hooks.example.com
	// <nil>
}

func ExampleFunc() {
	server := webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
		// Another listener calls reviews.ServeHTTP.
		announce(webhook.ClientConfig{URL: "https://hooks.example.com/root"})
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(server.Serve(ctx, http.NotFoundHandler(), func(c webhook.ClientConfig) {
		fmt.Println(c.URL)
		cancel()
	}))
	// Output:
	// https://hooks.example.com/root
	// <nil>
}
