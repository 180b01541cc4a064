// Package deploy creates the manifests of an operator from its description: roles, the
// Deployment and what belongs to it, policies, monitoring, and a Helm chart. Custom resource
// definitions are an input. The package is pure, except for [ReadOptions] and [Patches].
package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// OptionsFile is the name of the file with the options, next to the main package.
const OptionsFile = "gopf.yaml"

// Options are the facts about a deployment that the program does not state. The zero value
// of each means its default.
type Options struct {
	// Name is the name of all objects. Default: the name of the program.
	Name string `json:"name,omitempty"`
	// Namespace is the namespace of the operator. Default: the name.
	Namespace string `json:"namespace,omitempty"`
	// Image is the container image. Default: NAME:latest.
	Image string `json:"image,omitempty"`
	// Replicas is the number of pods. One of them works. Default: 1.
	Replicas int `json:"replicas,omitempty"`
	// Namespaces are the served namespaces. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Args are more flags of the command run.
	Args []string `json:"args,omitempty"`
	// Env are environment variables of the program. The hidden command "describe" gets them
	// as well, because declarations may depend on them.
	Env map[string]string `json:"env,omitempty"`
	// Definitions are files with custom resource definitions that are maintained elsewhere.
	// Their paths are relative to the folder of the options file.
	Definitions []string `json:"definitions,omitempty"`
	// Memory is the memory limit. Default: 256Mi.
	Memory string `json:"memory,omitempty"`
	// Monitoring adds a ServiceMonitor, alert rules and a dashboard. Default: false.
	Monitoring bool `json:"monitoring,omitempty"`
	// NoDocs leaves the descriptions out of the definitions. Default: false.
	NoDocs bool `json:"noDocs,omitempty"`
}

var (
	names     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	variables = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	memory    = regexp.MustCompile(`^([1-9][0-9]*)(Mi|Gi)$`)
)

// ReadOptions reads the options from a file, if it exists, and sets the defaults for the
// program with the name.
func ReadOptions(path, program string) (o Options, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return o, err
	}
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		return o, fmt.Errorf("read %s: %w", path, err)
	}
	if err := o.complete(program); err != nil {
		return o, fmt.Errorf("read %s: %w", path, err)
	}
	return o, nil
}

// complete sets the defaults, and checks the options.
func (o *Options) complete(program string) error {
	o.Name = cmp.Or(o.Name, strings.ToLower(strings.ReplaceAll(program, "_", "-")))
	o.Namespace = cmp.Or(o.Namespace, o.Name)
	o.Image = cmp.Or(o.Image, o.Name+":latest")
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.Memory = cmp.Or(o.Memory, "256Mi")
	switch {
	case !names.MatchString(o.Name) || len(o.Name) > 50:
		return fmt.Errorf("the name %q is not valid; use at most 50 lower-case letters, digits and -", o.Name)
	case !names.MatchString(o.Namespace):
		return fmt.Errorf("the namespace %q is not valid", o.Namespace)
	case slices.ContainsFunc(slices.Collect(maps.Keys(o.Env)), func(name string) bool { return !variables.MatchString(name) }):
		return fmt.Errorf("env has a name that is not valid; use letters, digits and _: %s", strings.Join(slices.Sorted(maps.Keys(o.Env)), ", "))
	case o.Replicas < 0:
		return fmt.Errorf("replicas is negative: %d", o.Replicas)
	case !memory.MatchString(o.Memory):
		return fmt.Errorf("the memory limit %q is not valid; use a number with Mi or Gi, such as 256Mi", o.Memory)
	}
	return nil
}

// goMemoryLimit returns 90 % of the memory limit, for GOMEMLIMIT.
func (o Options) goMemoryLimit() string {
	m := memory.FindStringSubmatch(o.Memory)
	n, _ := strconv.Atoi(m[1]) // the pattern has only digits
	if m[2] == "Gi" {
		n *= 1024
	}
	return fmt.Sprintf("%dMiB", n*9/10)
}
