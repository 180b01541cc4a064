// Package report presents the results, and checks them against the budgets.
package report

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Results are the results of one run.
type Results struct {
	Mode       string  `json:"mode"`
	Date       string  `json:"date"`
	Machine    string  `json:"machine"`
	Cores      int     `json:"cores"`
	Go         string  `json:"go"`
	Kubernetes string  `json:"kubernetes"`
	Runtime    string  `json:"controllerRuntime"`
	Commit     string  `json:"commit"`
	Busy       float64 `json:"busyBefore"`       // share of the CPU that others used before the start
	Stolen     float64 `json:"stolen"`           // share of the CPU that was taken away during the run
	Rounds     int     `json:"rounds,omitempty"` // of which the values are medians; 0 means that there was one
	Sizes      []Size  `json:"sizes"`
	Rows       []Row   `json:"rows"`
	Checks     []Check `json:"checks"`
}

// Size is the size of the objects, in bytes of stored JSON.
type Size struct {
	Entries int    `json:"entries"`
	Program string `json:"program"` // that handled it
	Fresh   int    `json:"fresh"`
	Handled int    `json:"handled"`
}

// Row is one measurement.
type Row struct {
	ID      string  `json:"id"`
	Program string  `json:"program"`
	Objects int     `json:"objects"`
	Note    string  `json:"note,omitempty"`
	Values  []Value `json:"values"`
}

// Value is a number with its unit.
type Value struct {
	Name string  `json:"name"`
	Is   float64 `json:"is"`
	Unit string  `json:"unit"`
}

// Add appends a row.
func (r *Results) Add(row Row) { r.Rows = append(r.Rows, row) }

// Find returns a value of a row. It returns false if there is none.
func (r *Results) Find(id, program string, objects int, note, name string) (float64, bool) {
	for _, row := range r.Rows {
		if row.ID != id || row.Program != program || row.Objects != objects || row.Note != note {
			continue
		}
		for _, v := range row.Values {
			if v.Name == name {
				return v.Is, true
			}
		}
	}
	return 0, false
}

// Write writes the results into the folder, as JSON, as a table and as a chart.
func (r *Results) Write(folder string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string]string{".json": string(text) + "\n", ".md": r.Table(), ".svg": r.Chart()} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, r.Mode+name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
