package health

// Report is how an operator is doing.
type Report struct {
	Started bool    `json:"started"`
	Live    Verdict `json:"live"`
	Ready   Verdict `json:"ready"`

	Warnings []string `json:"warnings"` // what somebody should look at, some time
	Notes    []string `json:"notes"`    // what is as it should be, but good to know

	// Findings are all that was looked at, what is fine included.
	Findings []Finding `json:"findings,omitempty"`
}

// Verdict is the answer to one question, and why it is no.
type Verdict struct {
	OK      bool     `json:"ok"`
	Reasons []string `json:"reasons"`
}

// Finding is what came of looking at one thing.
type Finding struct {
	About string `json:"about"` // "credentials", "alarms", "stream of pods", …
	Level Level  `json:"level"`
	Text  string `json:"text"` // a full sentence
}

// Level is what a finding means for the operator.
type Level string

// The levels of findings.
const (
	Fine    Level = "fine"
	Note    Level = "note"
	Warning Level = "warning"
	Unready Level = "unready" // no work should be expected from it now
	Dead    Level = "dead"    // a restart would cure it
)

func report(started bool, findings []Finding) Report {
	r := Report{Started: started, Findings: findings,
		Live: Verdict{Reasons: []string{}}, Ready: Verdict{Reasons: []string{}},
		Warnings: []string{}, Notes: []string{},
	}
	for _, f := range findings {
		switch f.Level {
		case Dead:
			r.Live.Reasons = append(r.Live.Reasons, f.Text)
		case Unready:
			r.Ready.Reasons = append(r.Ready.Reasons, f.Text)
		case Warning:
			r.Warnings = append(r.Warnings, f.Text)
		case Note:
			r.Notes = append(r.Notes, f.Text)
		}
	}
	r.Live.OK, r.Ready.OK = len(r.Live.Reasons) == 0, len(r.Ready.Reasons) == 0
	return r
}
