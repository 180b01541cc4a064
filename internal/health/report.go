package health

// Report is the health of an operator.
type Report struct {
	Started bool    `json:"started"`
	Live    Verdict `json:"live"`
	Ready   Verdict `json:"ready"`

	Warnings []string `json:"warnings"` // problems that need attention eventually
	Notes    []string `json:"notes"`    // normal, but good to know

	// Findings are the results of all checks, including successful ones.
	Findings []Finding `json:"findings,omitempty"`
}

// Verdict is a yes or no, with the reasons for a no.
type Verdict struct {
	OK      bool     `json:"ok"`
	Reasons []string `json:"reasons"`
}

// Finding is the result of one check.
type Finding struct {
	About string `json:"about"` // "credentials", "alarms", "stream of pods", …
	Level Level  `json:"level"`
	Text  string `json:"text"` // a full sentence
}

// Level is the severity of a finding.
type Level string

// Levels of findings.
const (
	Fine    Level = "fine"
	Note    Level = "note"
	Warning Level = "warning"
	Unready Level = "unready" // the operator cannot do its work now
	Dead    Level = "dead"    // a restart would help
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
