// Command pictures draws the diagrams of the manual: for each docs/pictures/NAME.txt, it
// writes NAME.svg. It also draws the chart of measured numbers. Run it in the folder site,
// after a change of a text file or of the results of the benchmarks.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopf.dev/gopf/site/picture"
)

func main() {
	theme := flag.String("theme", "", "draw only in the colors of this theme, light or dark; default: both, by the theme of the system")
	from := flag.String("from", "../docs/pictures", "the folder of the text files")
	out := flag.String("out", "../docs/pictures", "the folder of the drawings")
	results := flag.String("results", "../bench/results/bench.json", "the results of the benchmarks")
	flag.Parse()
	if err := errors.Join(draw(*from, *out, *theme), drawNumbers(*results, *out, *theme)); err != nil {
		fmt.Fprintln(os.Stderr, "draw pictures:", err)
		os.Exit(1)
	}
}

func draw(from, out, theme string) error {
	sources, err := filepath.Glob(filepath.Join(from, "*.txt"))
	if err != nil {
		return err
	}
	for _, source := range sources {
		p, err := picture.Read(source)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(source), ".txt") + ".svg"
		if err := os.WriteFile(filepath.Join(out, name), []byte(p.SVG(theme)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func drawNumbers(results, out, theme string) error {
	numbers, err := picture.Numbers(results)
	if err != nil {
		return err
	}
	p, err := picture.Chart(numbers)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "numbers.svg"), []byte(p.SVG(theme)), 0o644)
}
