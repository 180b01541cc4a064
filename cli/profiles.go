package cli

// profilesAddress is the address of --pprof without a value, and insightAddress that of
// --insight.
const (
	profilesAddress = "localhost:6060"
	insightAddress  = "localhost:6080"
)

// profiles is the value of --pprof, an address. Words for "yes" mean the default address,
// words for "no" mean none, so the variable can be used as a switch.
type profiles string

func (p *profiles) Set(s string) error { *p = profiles(addressOf(s, profilesAddress)); return nil }

func (p *profiles) Type() string   { return "address" }
func (p *profiles) String() string { return string(*p) }

// insightFlag is the value of --insight, like that of --pprof.
type insightFlag string

func (p *insightFlag) Set(s string) error {
	*p = insightFlag(addressOf(s, insightAddress))
	return nil
}

func (p *insightFlag) Type() string   { return "address" }
func (p *insightFlag) String() string { return string(*p) }

// addressOf returns the address that a value means.
func addressOf(s, usual string) string {
	switch yes, known := boolean(s); {
	case known && yes == "true":
		return usual
	case known:
		return ""
	}
	return s
}
