package main

import (
	"net"
	"slices"
	"strings"
	"testing"
)

func TestThePageGetsTheFirstFreePort(t *testing.T) {
	first, release := pageAddress(t.Context())
	if !strings.HasPrefix(first, "localhost:60") {
		t.Fatalf("the address is %q", first)
	}
	other, releaseOther := pageAddress(t.Context())
	if other == first {
		t.Errorf("%s was given to two programs that do not listen yet", first)
	}
	releaseOther()
	release()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	second, releaseSecond := pageAddress(t.Context())
	defer releaseSecond()
	if second <= first || !strings.HasPrefix(second, "localhost:60") {
		t.Errorf("%s is taken, and the next is %q", first, second)
	}
	t.Setenv(insightVariable, "localhost:7777")
	if own, _ := pageAddress(t.Context()); own != "localhost:7777" {
		t.Errorf("the user's address is replaced by %q", own)
	}
	t.Setenv(insightVariable, "no")
	off, _ := pageAddress(t.Context())
	d := &dev{page: off}
	if d.link() != "" || !slices.Contains(d.environment("k"), insightVariable+"=no") {
		t.Errorf("the page is off, but there is %q and %q", d.link(), d.environment("k"))
	}
}

func TestTheLinkOfThePageHasAHost(t *testing.T) {
	for address, want := range map[string]string{"localhost:6080": "http://localhost:6080/", ":6090": "http://localhost:6090/", "": "", "localhost:0": ""} {
		if got := (&dev{page: address}).link(); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
