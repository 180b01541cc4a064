package metacontroller

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"

	"gopf.dev/gopf/internal/jsonvalue"
)

// reducer removes all but the metadata from large objects in the responses of watches, before the
// client decodes them: decoded, an object takes up to fifty times the memory of its JSON, and each
// controller has its own watches.
type reducer struct {
	next http.RoundTripper
	mark string // the field with the size of the whole object; no client can know it
}

const (
	// reducedFrom is the memory of an event, in bytes, from which on its object is reduced, by an
	// estimate that is up to twice as high as [footprint]. So only objects above keptSize are.
	reducedFrom = 4 << 20
	// longestEvent is the size of the longest event that is read, in bytes. API servers accept
	// no such objects.
	longestEvent = 16 << 20
)

// newMark returns a name for [reducer.mark].
func newMark() string { return "gopf.dev/reduced-" + rand.Text() }

// RoundTrip implements [http.RoundTripper].
func (r *reducer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK || !isWatch(request) {
		return response, err
	}
	response.Body = &reducedBody{ReadCloser: response.Body, events: jsonvalue.NewStream(response.Body, longestEvent), mark: r.mark}
	return response, nil
}

func isWatch(request *http.Request) bool {
	switch request.URL.Query().Get("watch") {
	case "1", "true":
		return true
	}
	return false
}

// reducedBody is the body of a watch whose large objects are reduced.
type reducedBody struct {
	io.ReadCloser
	events *jsonvalue.Stream
	mark   string
	rest   []byte // of the current event
}

// Read implements [io.Reader].
func (b *reducedBody) Read(p []byte) (n int, err error) {
	if len(b.rest) == 0 {
		event, err := b.events.Value()
		if err != nil {
			return 0, err
		}
		b.rest = reduced(event, b.mark)
	}
	n = copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// reduced returns a watch event whose object has only its metadata and its selector, and the size
// in the field mark, if it is large. Other events are returned as they are.
func reduced(event []byte, mark string) []byte {
	if jsonvalue.Memory(event) < reducedFrom {
		return event
	}
	members := membersOf(event)
	object := membersOf(members["object"])
	metadata := membersOf(object["metadata"])
	if len(metadata) == 0 { // as in the event of an error
		return event
	}
	size := textFootprint(members["object"]) - textFootprint(metadata["managedFields"])
	if size <= keptSize { // braces in texts count for the estimate
		return event
	}
	delete(metadata, "managedFields")
	fields := map[string][]byte{
		"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": joined(metadata), mark: fmt.Append(nil, size),
	}
	if selector := membersOf(object["spec"])["selector"]; len(selector) > 0 && jsonvalue.Memory(selector) < reducedFrom {
		fields["spec"] = joined(map[string][]byte{"selector": selector})
	}
	return joined(map[string][]byte{"type": members["type"], "object": joined(fields)})
}

// textFootprint returns the [footprint] of a JSON text after it is decoded.
func textFootprint(text []byte) (bytes int) {
	r := jsonvalue.Read(text)
	defer r.Close()
	var open []int // of the open values, the number of members or -1 for a list
	for {
		token, err := r.ReadToken()
		if err != nil {
			return bytes // the end
		}
		kind, inside := token.Kind(), len(open)-1
		if kind == '}' || kind == ']' {
			switch n := open[inside]; {
			case n > 8:
				bytes += 64 * n
			case n > 0:
				bytes += 288
			}
			open = open[:inside]
			continue
		}
		if inside >= 0 && open[inside] < 0 {
			bytes += 16
		}
		switch kind {
		case '{':
			bytes, open = bytes+48, append(open, 0)
		case '[':
			bytes, open = bytes+24, append(open, -1)
		case '"':
			if _, n := r.StackIndex(r.StackDepth()); inside >= 0 && open[inside] >= 0 && n%2 == 1 { // the name of a member
				open[inside]++
			} else {
				bytes += 16
			}
			bytes += len(token.String())
		default:
			bytes += 8
		}
	}
}

// membersOf returns the members of a JSON object. It is empty for other values.
func membersOf(object []byte) map[string][]byte {
	all := map[string][]byte{}
	w := jsonvalue.NewWalk(object)
	if !w.Take('{') {
		return all
	}
	for !w.Take('}') {
		name, value := w.Value(), w.Value()
		if len(value) == 0 || name[0] != '"' {
			break
		}
		all[string(jsonvalue.Unquoted(name))] = value
	}
	return all
}

// joined returns a JSON object with the members that have a value.
func joined(members map[string][]byte) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for name, value := range members {
		if len(value) == 0 {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		quoted, _ := jsonvalue.Encode(name) // a text always has JSON
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
