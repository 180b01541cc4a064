package process

import "testing"

func TestVersionsKeepTheirText(t *testing.T) {
	for _, text := range []string{"", "1", "42", "18446744073709551615", "18446744073709551616", "0", "00", "07", "+7", "-7", "7 ", "x"} {
		m := &Memory{}
		for _, former := range []string{"", "5", "x"} {
			m.setActed(versionOf(former))
			m.setActed(versionOf(text))
			if got := m.acted(); got != versionOf(text) {
				t.Errorf("%q after %q: %+v", text, former, got)
			}
		}
		if v := versionOf(text); (v == version{}) != (text == "") || v.number > 0 && v.text != "" {
			t.Errorf("%q: %+v", text, v)
		}
	}
	if versionOf("7") == versionOf("07") || versionOf("+7") == versionOf("7") {
		t.Error("different texts are one version")
	}
}

func TestTheMemoryKeepsItsVersionWithoutAWitness(t *testing.T) {
	m := &Memory{}
	m.setActed(versionOf("x"))
	m.setWitness(&witness{})
	m.setWitness(nil)
	if got := m.acted(); got != versionOf("x") {
		t.Errorf("got %+v", got)
	}
}
