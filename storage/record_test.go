package storage_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

func TestRecordsAreEncodedLikeInKopf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		record        storage.Record
		want, verbose string
	}{
		"fresh": {
			record:  storage.Record{Started: moment, Purpose: "create"},
			want:    `{"started":"2026-01-02T03:04:05.000006+00:00","purpose":"create","retries":0,"success":false,"failure":false}`,
			verbose: `{"started":"2026-01-02T03:04:05.000006+00:00","stopped":null,"delayed":null,"purpose":"create","retries":0,"success":false,"failure":false,"message":null,"subrefs":null}`,
		},
		"with everything": {
			record: storage.Record{Started: moment, Stopped: moment, Delayed: moment, Purpose: "update", Retries: 2,
				Success: true, Failure: true, Message: new("<é>"), Subrefs: []string{"a/b", "a/c"}},
			want: `{"started":"2026-01-02T03:04:05.000006+00:00","stopped":"2026-01-02T03:04:05.000006+00:00","delayed":"2026-01-02T03:04:05.000006+00:00",` +
				`"purpose":"update","retries":2,"success":true,"failure":true,"message":"<\u00e9>","subrefs":["a/b","a/c"]}`,
		},
		"empty message is a message": {
			record: storage.Record{Message: new("")},
			want:   `{"retries":0,"success":false,"failure":false,"message":""}`,
		},
		"the length of a delay": {
			record: storage.Record{Delayed: moment, Delay: 90*time.Second + 1500*time.Microsecond, Retries: 3},
			want:   `{"delayed":"2026-01-02T03:04:05.000006+00:00","retries":3,"success":false,"failure":false,"delay":"90.0015/3"}`,
		},
		"a length without a delay": {
			record: storage.Record{Delay: time.Second},
			want:   `{"retries":0,"success":false,"failure":false}`,
		},
		"nobody's": {
			record: storage.Record{Subrefs: []string{}},
			want:   `{"retries":0,"success":false,"failure":false}`,
		},
	}
	for name, tc := range cases {
		if got := tc.record.Encode(false); got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
		if tc.verbose == "" {
			tc.verbose = tc.want
		}
		if got := tc.record.Encode(true); name == "fresh" && got != tc.verbose {
			t.Errorf("%s, verbose: got  %s\nwant %s", name, got, tc.verbose)
		}
	}
}

func TestRecordsOfAnyOriginAreDecoded(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text    string
		want    storage.Record
		invalid bool
	}{
		"empty":          {text: `{}`},
		"nulls":          {text: `{"started":null,"stopped":null,"delayed":null,"purpose":null,"retries":null,"success":null,"failure":null,"message":null,"subrefs":null}`},
		"unknown fields": {text: `{"retries":1,"future":{"a":1}}`, want: storage.Record{Retries: 1}},
		"old times":      {text: `{"started":"2026-01-02T03:04:05.000006"}`, want: storage.Record{Started: moment}},
		"empty message":  {text: `{"message":""}`, want: storage.Record{Message: new("")}},
		"no subrefs":     {text: `{"subrefs":[]}`},
		"below zero":     {text: `{"retries":-9223372036854775808}`},
		"too high":       {text: `{"retries":9223372036854775807}`, want: storage.Record{Retries: 1 << 30}},
		"a delay":        {text: `{"delayed":"2026-01-02T03:04:05.000006","retries":2,"delay":"1.5/2"}`, want: storage.Record{Delayed: moment, Retries: 2, Delay: 1500 * time.Millisecond}},
		"an old delay":   {text: `{"delayed":"2026-01-02T03:04:05.000006","retries":3,"delay":"1.5/2"}`, want: storage.Record{Delayed: moment, Retries: 3}},
		"an ended delay": {text: `{"delayed":null,"retries":2,"delay":"1.5/2"}`, want: storage.Record{Retries: 2}},
		"odd delays":     {text: `{"delayed":"2026-01-02T03:04:05.000006","delay":"NaN/0"}`, want: storage.Record{Delayed: moment}},
		"endless delays": {text: `{"delayed":"2026-01-02T03:04:05.000006","delay":"1e300/0"}`, want: storage.Record{Delayed: moment}},
		"another type":   {text: `{"delayed":"2026-01-02T03:04:05.000006","delay":{"a":1}}`, want: storage.Record{Delayed: moment}},
		"wrong time":     {text: `{"started":"yesterday"}`, invalid: true},
		"wrong type":     {text: `{"retries":"many"}`, invalid: true},
		"no object":      {text: `[]`, invalid: true},
	}
	for name, tc := range cases {
		var got storage.Record
		if err := json.Unmarshal([]byte(tc.text), &got); (err != nil) != tc.invalid {
			t.Errorf("%s: error %v, want one: %v", name, err, tc.invalid)
		}
		if !got.Equal(tc.want) || got.Delay != tc.want.Delay {
			t.Errorf("%s: got %s and the delay %s, want %s and %s", name, got.Encode(true), got.Delay, tc.want.Encode(true), tc.want.Delay)
		}
	}
}

func TestRecordsAreEqualIfEncodedTheSame(t *testing.T) {
	t.Parallel()
	now := time.Now()
	record := storage.Record{Started: now, Purpose: "create", Message: new("m")}
	var read storage.Record
	if err := json.Unmarshal([]byte(record.Encode(true)), &read); err != nil {
		t.Fatal(err)
	}
	if !read.Equal(record) {
		t.Errorf("a record differs after encoding and decoding: %v, %v", read, record)
	}
	for name, change := range map[string]func(*storage.Record){
		"started": func(r *storage.Record) { r.Started = now.Add(time.Second) },
		"stopped": func(r *storage.Record) { r.Stopped = now },
		"delayed": func(r *storage.Record) { r.Delayed = now },
		"delay":   func(r *storage.Record) { r.Delayed, r.Delay = now, time.Minute },
		"purpose": func(r *storage.Record) { r.Purpose = "" },
		"retries": func(r *storage.Record) { r.Retries = 1 },
		"success": func(r *storage.Record) { r.Success = true },
		"failure": func(r *storage.Record) { r.Failure = true },
		"message": func(r *storage.Record) { r.Message = new("n") },
		"no msg":  func(r *storage.Record) { r.Message = nil },
		"subrefs": func(r *storage.Record) { r.Subrefs = []string{"x"} },
	} {
		changed := record
		if change(&changed); changed.Equal(record) || record.Equal(changed) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestFieldsDeleteFormerValues(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"started": "2026-01-02T03:04:05.000006+00:00", "stopped": nil, "delayed": nil, "purpose": "create",
		"retries": int64(1), "success": false, "failure": false, "message": nil, "subrefs": nil,
	}
	got := storage.Record{Started: moment, Purpose: "create", Retries: 1}.Fields()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestSuccessAndFailureFinishAHandler(t *testing.T) {
	t.Parallel()
	if (storage.Record{Retries: 1}).Finished() || !(storage.Record{Success: true}).Finished() || !(storage.Record{Failure: true}).Finished() {
		t.Error("only success and failure finish a handler")
	}
}

// The operator measures compressed texts before it decodes them. It finds them only if they
// have no escapes.
func TestACompressedMessageWithEscapesIsMalformed(t *testing.T) {
	t.Parallel()
	for message, readable := range map[string]bool{
		`gz:H4sIAA/+=`: true, `\u0067z:H4sIAA`: false, `gz:\u00484sIAA`: false, `gz:H4sIAA\/`: false, `gz:H4sIAA\n`: false,
		`gz: failed at \"x\"`: true,
	} {
		o := annotated(storage.DefaultPrefix+"/id", `{"message":"`+message+`"}`)
		records, err := storage.NewAnnotationProgress(storage.DefaultPrefix).Load(t.Context(), o, []string{"id"})
		if _, found := records["id"]; found != readable || (err == nil) != readable {
			t.Errorf("%s: found %v, error %v", message, found, err)
		}
	}
}
