package process

import "testing"

func TestOnlyKeysOfTheObjectItselfAreUsed(t *testing.T) {
	t.Parallel()
	const change = "ABCDEFGHIJKLMNOP"
	for key, want := range map[string]bool{
		keyOwner("u") + change:          true,
		keyOwner("v") + change:          false,
		change:                          true, // of an earlier version
		"":                              false,
		"prod":                          false,
		"../../other/database":          false,
		keyOwner("u") + change + change: false,
		"abcdefghijklmnop":              false,
	} {
		if got := ownKey(key, "u"); got != want {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
}
