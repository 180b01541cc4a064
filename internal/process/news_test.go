package process

import (
	"testing"

	"gopf.dev/gopf/internal/object"
)

func TestWhatWasReadAnewAndNotActedOnIsNewsWhenTheStreamBringsIt(t *testing.T) {
	at := func(version string) *object.Body {
		return &object.Body{Identity: object.Identity{ResourceVersion: version}}
	}
	m := &Memory{version: "5", busy: &business{body: at("7")}} // a write met a conflict, and failed then
	for version, want := range map[string]bool{"4": false, "5": false, "6": false, "7": true, "8": true} {
		if got := m.isNews(at(version)); got != want {
			t.Errorf("version %s: got %v, want %v", version, got, want)
		}
	}
}
