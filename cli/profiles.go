package cli

// profilesAddress is the address of --pprof without a value.
const profilesAddress = "localhost:6060"

// profiles is a flag value with an address. Words for "yes" mean the default address, words
// for "no" mean none, so the variable can be used as a switch.
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
