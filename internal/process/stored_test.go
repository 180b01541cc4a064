package process

import (
	"bytes"
	"log/slog"
	"testing"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/logs"
)

func TestObjectsAreLoggedAsJSONAndSecretsAreHidden(t *testing.T) {
	body, err := object.Parse([]byte(`{"kind":"Thing","spec":{"a":"b c"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind kind.Info
		want string
	}{
		{kind.Info{Kind: "Thing"}, `Seen: body={"kind":"Thing","spec":{"a":"b c"}}`},
		{kind.Info{Kind: "Secret"}, `Seen: body="(a secret)"`},
		{kind.Info{Kind: "Secret", Group: "example.com"}, `Seen: body={"kind":"Thing","spec":{"a":"b c"}}`},
	} {
		var out bytes.Buffer
		p := &Processor{Resource: test.kind}
		slog.New(logs.New(&out, logs.Options{Format: logs.Plain})).Info("Seen:", "body", p.shown(body))
		if got := out.String(); got != test.want+"\n" {
			t.Errorf("%v: got %s, want %s", test.kind, got, test.want)
		}
	}
}
