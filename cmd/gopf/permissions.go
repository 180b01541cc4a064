package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/permissions"
)

// permissionsRun is one run of "gopf permissions".
type permissionsRun struct {
	verify, learn, strict, tests bool
	against                      string
	test                         []string // arguments of go test
}

func newPermissions() *cobra.Command {
	var p permissionsRun
	cmd := &cobra.Command{
		Use:   "permissions [PATH] [flags] [-- ARGS]",
		Short: "Show, learn and verify the permissions of an operator",
		Long: `Print the permissions that the operator in the folder PATH (default: the current one)
needs, each with the handlers or settings that need it.

--verify compares deploy/rbac.yaml with them, and then runs the tests of the module with
exactly these permissions: operators that package gopftest starts act as the service
account of the manifest. A request that is not granted fails its test. Permissions that no
test has used are listed, except those that are only needed after failures.

--tests runs the tests without limits, and adds the tests that have used each permission to
the table. It also names the handlers that no test has called.

--learn runs the tests without limits, and prints the declarations gopf.May that are
missing.

--against prints the difference from the permissions of another git revision.

ARGS are the arguments of go test; default: ./...`,
		Example: "  gopf permissions\n  gopf permissions --verify\n  gopf permissions --verify -- -run TestOperator ./...\n  gopf permissions --against origin/main",
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash > 1 || dash < 0 && len(args) > 1 {
				return errors.New("name only one folder, and put the arguments of go test after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "."
			dash := cmd.ArgsLenAtDash()
			if len(args) > 0 && dash != 0 {
				path = args[0]
			}
			if dash >= 0 {
				p.test = args[dash:]
			}
			return p.run(cmd.Context(), path, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&p.verify, "verify", false, "run the tests with exactly the permissions of deploy/rbac.yaml")
	flags.BoolVar(&p.learn, "learn", false, "run the tests without limits, and print missing declarations")
	flags.BoolVar(&p.strict, "strict", false, "with --verify: fail because of permissions that no test has used")
	flags.StringVar(&p.against, "against", "", "print the difference from this git `revision`")
	flags.BoolVar(&p.tests, "tests", false, "run the tests without limits, and show which of them have used each permission")
	cmd.MarkFlagsMutuallyExclusive("verify", "learn", "tests", "against")
	return cmd
}

func (p *permissionsRun) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	d, err := loadDeployment(ctx, path, false, stderr)
	if err != nil {
		return err
	}
	d.tell(stderr)
	switch {
	case p.verify:
		return p.runVerify(ctx, d, stdout, stderr)
	case p.learn:
		return p.runLearn(ctx, d, stdout, stderr)
	case p.tests:
		requests, err := d.runUnlimited(ctx, p.test, stdout, stderr)
		if err != nil {
			return err
		}
		return errors.Join(d.printPermissions(stdout, requests), d.printUncalled(stdout, requests))
	case p.against != "":
		return d.printDifference(ctx, p.against, stdout)
	}
	return d.printPermissions(stdout, nil)
}

// printPermissions prints a table: verb, resource, source, and the consequence. With the
// requests of tests, it has one more column.
func (d *deployment) printPermissions(stdout io.Writer, requests []request) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	head := "PERMISSION\tNEEDED BY\tWITHOUT IT"
	if requests != nil {
		head = "PERMISSION\tUSED BY TESTS\tNEEDED BY\tWITHOUT IT"
	}
	fmt.Fprintln(w, head)
	for _, one := range d.model.Permissions {
		if one.Account == permissions.Operating {
			continue
		}
		var without []string
		for _, s := range one.Sources {
			if !slices.Contains(without, s.Without) {
				without = append(without, s.Without)
			}
		}
		used := ""
		if requests != nil {
			used = testsOf(one, requests) + "\t"
		}
		fmt.Fprintf(w, "%s\t%s%s\t%s\n", one, used, one.NeededBy(), strings.Join(without, "; "))
	}
	return w.Flush()
}

// printDifference compares with the roles of another revision.
func (d *deployment) printDifference(ctx context.Context, revision string, stdout io.Writer) error {
	text, err := gitOutput(ctx, d.path, "show", revision+":./deploy/rbac.yaml")
	if err != nil {
		return fmt.Errorf("read deploy/rbac.yaml of %s: %w", revision, err)
	}
	before, err := permissions.Parse(text, d.model.Target)
	if err != nil {
		return err
	}
	for _, line := range permissions.Difference(before, d.model.Permissions, d.model.Target) {
		fmt.Fprintln(stdout, line)
	}
	return nil
}

// runVerify compares the manifest with the declarations, and then with the tests.
func (p *permissionsRun) runVerify(ctx context.Context, d *deployment, stdout, stderr io.Writer) error {
	manifest := filepath.Join(d.folder, "rbac.yaml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		return fmt.Errorf("read the roles: %w; run 'gopf manifests'", err)
	}
	if err := d.compareRoles(manifest, text, stdout); err != nil {
		return err
	}
	requests, err := d.runTests(ctx, manifest, false, p.test, stdout, stderr)
	if err != nil {
		return fmt.Errorf("the tests fail with the permissions of %s: %w", manifest, err)
	}
	if err := d.printUncalled(stdout, requests); err != nil {
		return err
	}
	unused := notUsed(d.model.Permissions, requests)
	for _, one := range unused {
		fmt.Fprintf(stdout, "not tested: %s, needed by %s\n", one, one.NeededBy())
	}
	if p.strict && len(unused) > 0 {
		return fmt.Errorf("no test has used %s", count(len(unused), "permission"))
	}
	fmt.Fprintf(stdout, "The tests pass with exactly the permissions of %s.\n", manifest)
	return nil
}

// compareRoles compares the roles in a manifest with the declarations.
func (d *deployment) compareRoles(manifest string, text []byte, stdout io.Writer) error {
	granted, err := permissions.Parse(text, d.model.Target)
	if err != nil {
		return err
	}
	missing, superfluous := permissions.Compare(d.model.Permissions, granted, d.model.Target)
	for _, one := range missing {
		fmt.Fprintf(stdout, "missing: %s is needed by %s; without it, %s\n", one, one.NeededBy(), one.Sources[0].Without)
	}
	for _, g := range superfluous {
		fmt.Fprintf(stdout, "unused: %s is needed by no handler, declaration or setting\n", g)
	}
	if len(missing)+len(superfluous) > 0 {
		return fmt.Errorf("%s does not match the declarations: %s missing, %d unused; run 'gopf manifests'", manifest, count(len(missing), "permission"), len(superfluous))
	}
	return nil
}

// runLearn prints the declarations for requests that the declarations do not cover.
func (p *permissionsRun) runLearn(ctx context.Context, d *deployment, stdout, stderr io.Writer) error {
	requests, err := d.runUnlimited(ctx, p.test, stdout, stderr)
	if err != nil {
		return err
	}
	lines := learned(requests)
	if len(lines) == 0 {
		fmt.Fprintln(stdout, "The declarations cover all requests of the tests.")
		return nil
	}
	fmt.Fprintln(stdout, "Add to the declarations:")
	for _, line := range lines {
		fmt.Fprintln(stdout, "  "+line)
	}
	return nil
}

// runUnlimited runs the tests with the derived permissions. Requests that these do not cover
// are executed and marked.
func (d *deployment) runUnlimited(ctx context.Context, args []string, stdout, stderr io.Writer) ([]request, error) {
	temp, err := os.MkdirTemp("", "gopf-permissions-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	manifest := filepath.Join(temp, "rbac.yaml")
	if err := os.WriteFile(manifest, d.model.Access(), 0o600); err != nil {
		return nil, err
	}
	requests, err := d.runTests(ctx, manifest, true, args, stdout, stderr)
	if err != nil {
		return nil, fmt.Errorf("the tests fail: %w", err)
	}
	return requests, nil
}

// request is a line of the report of package gopftest.
type request struct {
	Verb, Group, Version, Resource, Name, Namespace, Handler, Test string
	Denied                                                         bool
}

// runTests runs the tests of the module as the account of the manifest.
func (d *deployment) runTests(ctx context.Context, manifest string, learn bool, args []string, stdout, stderr io.Writer) ([]request, error) {
	temp, err := os.MkdirTemp("", "gopf-permissions-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	report := filepath.Join(temp, "used")
	if manifest, err = filepath.Abs(manifest); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{"./..."}
	}
	cmd := goCommand(ctx, d.path, append([]string{"test", "-count=1"}, args...)...)
	cmd.Env = append(os.Environ(), "GOPF_TEST_AS="+manifest, "GOPF_TEST_USED="+report)
	if learn {
		cmd.Env = append(cmd.Env, "GOPF_TEST_LEARN=1")
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("go test: %w", err)
	}
	text, err := os.ReadFile(report)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("no test starts an operator with gopftest.Start or gopftest.RunCommand, so nothing was verified")
	}
	if err != nil {
		return nil, err
	}
	var all []request
	for line := range strings.Lines(string(text)) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("read the report of the tests: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// learned returns a declaration for each resource of denied requests, with the handlers that
// sent them.
func learned(requests []request) (lines []string) {
	type use struct{ group, version, resource string }
	verbs, handlers := map[use][]string{}, map[use][]string{}
	var order []use
	for _, r := range requests {
		if !r.Denied {
			continue
		}
		u := use{r.Group, r.Version, r.Resource}
		if verbs[u] == nil {
			order = append(order, u)
		}
		if quoted := fmt.Sprintf("%q", r.Verb); !slices.Contains(verbs[u], quoted) {
			verbs[u] = append(verbs[u], quoted)
		}
		if r.Handler != "" && !slices.Contains(handlers[u], r.Handler) {
			handlers[u] = append(handlers[u], r.Handler)
		}
	}
	for _, u := range order {
		slices.Sort(verbs[u])
		name := strings.TrimPrefix(u.group+"/"+u.version+"/"+u.resource, "/")
		by := ""
		if len(handlers[u]) > 0 {
			by = " // handler " + strings.Join(handlers[u], ", ")
		}
		lines = append(lines, fmt.Sprintf("gopf.RegisterType[gopf.Unstructured](op, %q, gopf.May(%s))%s", name, strings.Join(verbs[u], ", "), by))
	}
	slices.Sort(lines)
	return lines
}
