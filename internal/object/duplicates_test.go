package object

import (
	"strings"
	"testing"
)

func TestAnObjectWithDuplicateFieldsIsUnreadable(t *testing.T) {
	for name, text := range map[string]string{
		"metadata": `{"metadata":{"name":"x","deletionTimestamp":"2020-01-01T00:00:00Z"},"metadata":{"name":"x"}}`,
		"spec":     `{"metadata":{"name":"x"},"spec":{"a":1},"spec":{"b":2}}`,
		"status":   `{"status":{},"metadata":{"name":"x"},"status":{}}`,
		"kind":     `{"kind":"A","kind":"B","metadata":{"name":"x"}}`,
		"uid":      `{"metadata":{"name":"x","uid":"a","u\u0069d":"b"}}`,
		"labels":   `{"metadata":{"name":"x","labels":{"a":"1"},"labels":{"b":"2"}}}`,
		"deletionTimestamp": `{"metadata":{"name":"x","deletionTimestamp":"2020-01-01T00:00:00Z",
			"deletionTimestamp":null}}`,
		"managedFields": `{"metadata":{"name":"x","managedFields":[],"managedFields":[]}}`,
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), `the field "`+name+`" occurs twice`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Parse([]byte(`{"metadata":{"name":"x","Name":"y"},"Metadata":{},"spec":{"name":"x"},"status":{"name":"x"}}`)); err != nil {
		t.Error(err)
	}
}
