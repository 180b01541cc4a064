package cli

// profilesAddress is where profiles are served by --pprof without an address.
const profilesAddress = "localhost:6060"

// profiles is a flag for an address. Words for yes stand for the usual one, words
// for no for none, so that its variable may be a switch.
type profiles string

func (p *profiles) Set(s string) error {
	switch yes, known := boolean(s); {
	case known && yes == "true":
		*p = profilesAddress
	case known:
		*p = ""
	default:
		*p = profiles(s)
	}
	return nil
}

func (p *profiles) Type() string   { return "address" }
func (p *profiles) String() string { return string(*p) }
