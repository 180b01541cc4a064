package health

import "testing"

func TestAddressesWithoutAHostAreLocal(t *testing.T) {
	for address, want := range map[string]string{
		":6060": "localhost:6060", "0.0.0.0:6060": "0.0.0.0:6060", "localhost:1": "localhost:1", "[::1]:2": "[::1]:2", "": "", "x": "x",
	} {
		if got := LocalAddress(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
