package engine

import (
	"testing"

	"gopf.dev/gopf/webhook"
)

// declared is a webhook server that is never started.
var declared = webhook.Func(nil)

func TestWebhookConfigurationsOfServersForDevelopmentAreManaged(t *testing.T) {
	for name, test := range map[string]struct {
		config Admission
		want   string
	}{
		"nothing is set":             {Admission{DevName: "dev.example.com"}, "dev.example.com"},
		"managed":                    {Admission{Managed: "example.com", Server: declared, DevName: "dev.example.com"}, "example.com"},
		"managed, server not set":    {Admission{Managed: "example.com", DevName: "dev.example.com"}, "example.com"},
		"written by users, declared": {Admission{Server: declared, DevName: "dev.example.com"}, ""},
	} {
		op := &operator{Config: Config{Admission: test.config}}
		if got := op.managed(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestReplicasWithLeaderElectionShareTheirIdentityInPeerings(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"named":                   {Config{Peering: Peering{Identity: "me"}}, "me"},
		"election":                {Config{Peering: Peering{Identity: "me"}, Election: Election{Enabled: true, Namespace: "ns", Name: "op"}}, "replicas of ns/op"},
		"election, default place": {Config{Election: Election{Enabled: true, Name: "op"}}, "replicas of default/op"},
	} {
		op := &operator{Config: test.config}
		if got := op.identity(t.Context()); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got := (&operator{}).identity(t.Context()); got == "" {
		t.Error("an operator without a name has no identity")
	}
}
