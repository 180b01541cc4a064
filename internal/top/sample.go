// Package top shows the activity of a running operator from its metrics: streams, queues,
// handlers and requests. It is pure.
package top

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Sample has the metrics of an operator at one moment.
type Sample struct{ series []series }

// series is one line of the metrics.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

// maxLine limits the length of a line.
const maxLine = 1 << 20

// Parse reads metrics in the text format of Prometheus. It keeps those of the framework.
func Parse(r io.Reader) (*Sample, error) {
	s := &Sample{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(line, "gopf_") {
			continue
		}
		one, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("read the metrics: %q: %w", line, err)
		}
		s.series = append(s.series, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	if len(s.series) == 0 {
		return nil, errors.New("read the metrics: there are none of the framework; is this the address of an operator's metrics?")
	}
	return s, nil
}

func parseLine(line string) (s series, err error) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return s, errors.New("there is no value")
	}
	s.name, line = line[:end], line[end:]
	s.labels = map[string]string{}
	if strings.HasPrefix(line, "{") {
		if line, err = parseLabels(line[1:], s.labels); err != nil {
			return s, err
		}
	}
	value, _, _ := strings.Cut(strings.TrimSpace(line), " ") // a timestamp may follow
	s.value, err = strconv.ParseFloat(value, 64)
	return s, err
}

// parseLabels reads labels up to the closing brace, and returns the rest of the line.
func parseLabels(text string, into map[string]string) (rest string, err error) {
	for {
		text = strings.TrimLeft(text, ", ")
		if rest, closed := strings.CutPrefix(text, "}"); closed {
			return rest, nil
		}
		name, quoted, ok := strings.Cut(text, "=")
		if !ok {
			return "", errors.New("a label has no value")
		}
		value, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return "", fmt.Errorf("label %s: %w", name, err)
		}
		if into[name], err = strconv.Unquote(value); err != nil {
			return "", fmt.Errorf("label %s: %w", name, err)
		}
		text = quoted[len(value):]
	}
}

// sum returns the sum of the metric over all series with the labels.
func (s *Sample) sum(name string, labels map[string]string) (total float64) {
	if s == nil {
		return 0
	}
	for _, one := range s.series {
		if one.name == name && matches(one.labels, labels) {
			total += one.value
		}
	}
	return total
}

func matches(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// values returns the values of a label of the metric, each once, in their order.
func (s *Sample) values(metric, label string) (values []string) {
	seen := map[string]bool{}
	for _, one := range s.series {
		if v := one.labels[label]; one.name == metric && !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values
}
