package manual

import (
	"os"
	"path/filepath"
	"strings"
)

// measurements returns the page with the results of the benchmarks. Its charts are drawn by
// the command pictures.
func (s *Site) measurements() (*Page, error) {
	raw, err := os.ReadFile(filepath.Join(s.root, "bench/results/bench.md"))
	if err != nil {
		return nil, err
	}
	_, results, _ := strings.Cut(string(raw), "\n")
	text := "# Benchmarks\n\nMeasured next to controller-runtime, on one machine, with the same API server; the folder bench of the repository has the programs. " +
		"Lower is better, except for rates.\n\n![Bars of memory, start and relist of Gopf and controller-runtime with the same objects](pictures/numbers.svg)\n\n" +
		"## Run\n" + results + "\n## All charts\n\n<img src=\"bench.svg\" alt=\"Bars of all measurements in the tables above\" loading=\"lazy\" style=\"max-width:100%\">\n"
	return &Page{Name: "benchmarks", Markdown: text, Description: "measurements next to controller-runtime: memory, CPU, latency, starts"}, nil
}
