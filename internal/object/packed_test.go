package object

import "testing"

func TestPackedBodiesKeepTheirIdentities(t *testing.T) {
	var p Packer
	versions := []string{"", "0", "7", "8", "07", "+7", "18446744073709551615", "18446744073709551616", "text"}
	for _, version := range versions {
		for _, id := range []Identity{
			{ResourceVersion: version},
			{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "a", UID: "u", ResourceVersion: version, Deleting: true},
			{APIVersion: "v1", Kind: "Node", Name: "nsa", UID: "u", ResourceVersion: version},
		} {
			k := p.Pack(&Body{Identity: id})
			for _, k := range []*Packed{k, k.Hollow()} {
				if k.Identity() != id || !k.Is(id) || k.Key() != id.Key() || k.Deleting() != id.Deleting {
					t.Errorf("%+v became %+v", id, k.Identity())
				}
			}
			n, ok := k.Version()
			if wantN, wantOK := id.Version(); n != wantN && wantOK || ok != wantOK {
				t.Errorf("version %q: got %d, %t", version, n, ok)
			}
			for _, other := range versions {
				than := id
				than.ResourceVersion = other
				if k.Is(than) != (other == version) || k.HasVersion(other) != (other == version) {
					t.Errorf("%q is %q: %t", version, other, k.Is(than))
				}
				if k.Newer(than) != id.Newer(than) || k.Older(than) != than.Newer(id) {
					t.Errorf("%q against %q: newer %t, older %t", version, other, k.Newer(than), k.Older(than))
				}
			}
		}
	}
	k, id := p.Pack(&Body{Identity: Identity{Namespace: "ab", Name: "c", UID: "u"}}), Identity{Namespace: "a", Name: "bc", UID: "u"}
	if k.Is(id) {
		t.Errorf("%+v is %+v", k.Identity(), id)
	}
}
