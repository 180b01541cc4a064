// Package side8 runs the apply and delete scripts of Side8's k8s-operator unchanged.
package side8

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/serve/call"
)

// Finalizer is the finalizer of Side8.
const Finalizer = "Side8OperatorDelete"

// maxEnvironment limits the names and values of all variables of a script, in bytes. Linux
// starts no program with more. The name of a variable has all keys on its path: an object of
// 1 MB with a long key above many values would take gigabytes.
const maxEnvironment = 6 << 20

// ErrLarge means that the variables of an object are larger than a program can get.
var ErrLarge = fmt.Errorf("the variables of the object take more than %d MiB", maxEnvironment>>20)

// Environment returns the variables that describe an object to a script. text is the JSON
// of the object. If two paths result in the same name, the later one wins. But only the
// identity of the object, which the API server checks, sets names like K8S_METADATA_NAME: a
// tenant must not name another object with a field like metadata_name. If the variables are too
// large for a program, it returns [ErrLarge].
func Environment(text []byte) (names []string, values map[string]string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	f := flattener{decoder: d, values: map[string]string{}, checked: map[string]bool{}}
	if err := f.value(root, false); err != nil {
		return nil, nil, fmt.Errorf("flatten the object: %w", err)
	}
	return f.names, f.values, nil
}

// flattener reads tokens, because the order of the keys matters.
type flattener struct {
	decoder *json.Decoder
	names   []string
	values  map[string]string
	checked map[string]bool // names of the identity
	size    int             // of all names and values
}

// root is the name of the variable with the whole object, and the start of all other names.
const root = "K8S"

// value sets the variables of the next value. checked means that it is a part of the identity.
func (f *flattener) value(path string, checked bool) error {
	token, err := f.decoder.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		for i := 0; f.decoder.More(); i++ {
			key := strconv.Itoa(i)
			if v == '{' {
				name, err := f.decoder.Token()
				if err != nil {
					return err
				}
				key = name.(string) // JSON has no other keys
			}
			identity := path == root && (key == "apiVersion" || key == "kind" || key == "metadata")
			if err := f.value(path+"_"+strings.ToUpper(key), checked || identity); err != nil {
				return err
			}
		}
		_, err := f.decoder.Token() // the closing delimiter
		return err
	case bool:
		return f.set(path, map[bool]string{true: "1", false: "0"}[v], checked)
	case nil:
		return f.set(path, "", checked)
	case string:
		return f.set(path, v, checked)
	case json.Number:
		return f.set(path, number(v), checked)
	}
	return nil
}

func (f *flattener) set(name, value string, checked bool) error {
	if f.checked[name] && !checked {
		return nil
	}
	if checked {
		f.checked[name] = true
	}
	if f.size += len(name) + len(value); f.size > maxEnvironment {
		return ErrLarge
	}
	f.names = append(f.names, name)
	f.values[name] = value
	return nil
}

// number formats a number as Python does.
func number(n json.Number) string {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	v, err := n.Float64()
	if err != nil {
		return text
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
		return mantissa + "e" + exponent
	}
	out := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(out, ".") {
		out += ".0"
	}
	return out
}

// Parse returns the YAML document that a script has printed. No output is null. More than
// one document is an error, and so is a document that is too large. Parse ignores tags.
func Parse(output []byte) (any, error) {
	d := yaml.NewDecoder(bytes.NewReader(output))
	var node yaml.Node
	if err := d.Decode(&node); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, fmt.Errorf("the output is no YAML: %w", err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the output has more than one YAML document")
	}
	left := maxOutput
	if !count(&node, &left, maxLevels) {
		return nil, fmt.Errorf("the output takes more than %d MiB, or has more than %d levels, with the values of its aliases", maxOutput>>20, maxLevels)
	}
	oldBooleans(&node)
	var v any
	if err := node.Decode(&v); err != nil {
		return nil, fmt.Errorf("the output is no YAML: %w", err)
	}
	text, err := call.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("the output has no JSON form: %w", err)
	}
	var out any
	err = json.Unmarshal(text, &out)
	return out, err
}

// Limits of the output of a script. A text of some bytes can have many aliases of a large value.
const (
	maxOutput = 8 << 20 // bytes of texts, and 8 for each value
	maxLevels = 1000
)

// count subtracts the size of a value, with those of its aliases. It returns false if there is
// less left, or if the value has more levels.
func count(n *yaml.Node, left *int, levels int) bool {
	if *left -= 8 + len(n.Value); *left < 0 || levels == 0 {
		return false
	}
	if n.Kind == yaml.AliasNode {
		return count(n.Alias, left, levels-1)
	}
	for _, child := range n.Content {
		if !count(child, left, levels-1) {
			return false
		}
	}
	return true
}

// oldBooleans applies the rule of YAML 1.1 to plain scalars: yes, no, on and off are
// booleans.
func oldBooleans(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Style == 0 && n.Tag == "!!str" {
		switch n.Value {
		case "yes", "Yes", "YES", "on", "On", "ON":
			n.Tag, n.Value = "!!bool", "true"
		case "no", "No", "NO", "off", "Off", "OFF":
			n.Tag, n.Value = "!!bool", "false"
		}
	}
	for _, child := range n.Content {
		oldBooleans(child)
	}
}

// Script is the script to run for an object.
type Script int

// The scripts.
const (
	None         Script = iota
	AddFinalizer        // no script: the finalizer is missing
	Apply
	Delete
)

// Next returns the step for an object.
func Next(finalizers []string, deleting bool) Script {
	switch held := slices.Contains(finalizers, Finalizer); {
	case deleting && held:
		return Delete
	case deleting:
		return None
	case held:
		return Apply
	}
	return AddFinalizer
}

// Change is the change of an object after one step.
type Change struct {
	Ran           bool // a script ran, and Status is merged into the status
	Status        any
	Hold, Release bool // add or remove the finalizer
}

// Step runs the script that is due for an object, and returns the change. An error of the
// script means no change.
func Step(obj metav1.Object, run func(Script) (any, error)) (Change, error) {
	script := Next(obj.GetFinalizers(), obj.GetDeletionTimestamp() != nil)
	if script == None || script == AddFinalizer {
		return Change{Hold: script == AddFinalizer}, nil
	}
	out, err := run(script)
	if err != nil {
		return Change{}, err
	}
	return Change{Ran: true, Status: out, Release: script == Delete && Done(out)}, nil
}

// Done reports whether the output of the delete script releases the object.
func Done(output any) bool {
	switch v := output.(type) {
	case nil:
		return true
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
