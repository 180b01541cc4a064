package docs

import (
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
)

// TestAllSettingsAreDocumentedWithTheirDefaults compares the table of settings with
// the struct.
func TestAllSettingsAreDocumentedWithTheirDefaults(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([A-Z]\\w+\\.[A-Z]\\w+)` \\| ([^|]*) \\| ([^|]*) \\| ([^|]*) \\|$")
	told := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(readPage(t, "docs/configuration.md").prose, -1) {
		if _, twice := told[m[1]]; twice {
			t.Errorf("%s is there twice", m[1])
		}
		if strings.TrimSpace(m[3]) == "" || strings.TrimSpace(m[4]) == "" {
			t.Errorf("%s has no meaning, or no name in Kopf", m[1])
		}
		told[m[1]] = m[2]
	}
	settings := reflect.ValueOf(gopf.DefaultSettings())
	for i := range settings.NumField() {
		section := settings.Type().Field(i).Name
		for j := range settings.Field(i).NumField() {
			name := section + "." + settings.Field(i).Type().Field(j).Name
			text, found := told[name]
			delete(told, name)
			switch want, known := shown(name, settings.Field(i).Field(j).Interface()); {
			case !found:
				t.Errorf("%s is missing", name)
			case !known:
				t.Errorf("%s: this test does not know how its default is written", name)
			case text != want:
				t.Errorf("the default of %s is %s, but the page says %s", name, want, text)
			}
		}
	}
	for name := range told {
		t.Errorf("there is no setting %s", name)
	}
}

// shown is how a default is written in the table.
func shown(name string, v any) (text string, known bool) {
	switch v := v.(type) {
	case time.Duration:
		return duration(v), true
	case []time.Duration:
		return durations(v), true
	case iter.Seq[time.Duration]:
		return durations(slices.Collect(v)), true
	case string:
		if v == "" {
			return "empty", true
		}
		return "`" + v + "`", true
	case []byte:
		return "none", len(v) == 0
	case []string:
		return "none", len(v) == 0
	case bool, int:
		return fmt.Sprint(v), true
	case slog.Level:
		return strings.ToLower(v.String()), true
	case gopf.Lifecycle:
		if reflect.ValueOf(v).Pointer() == reflect.ValueOf(gopf.ASAP).Pointer() {
			return "`gopf.ASAP`", true
		}
	case nil:
		return "none", true
	}
	switch name { // what has no short form
	case "Metrics.Collectors", "Networking.Transport":
		return "none", reflect.ValueOf(v).IsNil()
	case "Persistence.Progress":
		return "annotations", true
	case "Persistence.Base":
		return "an annotation", true
	}
	return "", false
}

func duration(d time.Duration) string {
	if d%time.Second != 0 {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

func durations(ds []time.Duration) string {
	var texts []string
	for _, d := range ds {
		texts = append(texts, fmt.Sprint(int(d.Seconds())))
	}
	return strings.Join(texts, ", ") + " s"
}
