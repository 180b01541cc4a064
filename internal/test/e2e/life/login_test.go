package life_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// account makes a service account that may do what the rules of a role in the
// namespace say.
func (s *space) account(name string, rules ...fields) {
	s.T.Helper()
	const rbac = "rbac.authorization.k8s.io"
	s.Create("v1/serviceaccounts", name, nil)
	s.Create(rbac+"/v1/roles", name, fields{"rules": rules})
	s.Create(rbac+"/v1/rolebindings", name, fields{
		"subjects": []fields{{"kind": "ServiceAccount", "name": name, "namespace": s.Name}},
		"roleRef":  fields{"apiGroup": rbac, "kind": "Role", "name": name},
	})
}

// rule allows verbs for a resource of a group.
func rule(group, resource string, verbs ...string) fields {
	return fields{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": verbs}
}

// serving allows what operators need.
func serving() []fields {
	return []fields{rule("life.gopf.dev", "examples", "list", "watch", "patch", "get"), rule("life.gopf.dev", "examples/status", "patch")}
}

// token makes one for the account, valid as long as the secret of the name
// exists.
func (s *space) token(account, secret string) *rest.Config {
	s.T.Helper()
	s.Create("v1/secrets", secret, nil)
	request := &unstructured.Unstructured{Object: fields{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": fields{"name": account},
		"spec": fields{"boundObjectRef": fields{"apiVersion": "v1", "kind": "Secret", "name": secret}},
	}}
	answer, err := s.Of("v1/serviceaccounts").Create(context.Background(), request, metav1.CreateOptions{}, "token")
	if err != nil {
		s.T.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster)
	config.BearerToken, _, _ = unstructured.NestedString(answer.Object, "status", "token")
	return config
}

func TestARefusedTokenIsReplacedByTheLogin(t *testing.T) {
	t.Parallel()
	s, d, health := newSpace(t), &diary{}, kit.FreeAddress(t)
	s.account("ours", serving()...)
	tokens := []*rest.Config{s.token("ours", "s1"), s.token("ours", "s2")}
	var logins atomic.Int32
	var broken atomic.Bool
	op := newOperator()
	op.Settings.Health.Address = health
	op.Settings.Posting.Enabled = false
	op.OnLogin("login", func(context.Context, *gopf.Activity) (*gopf.Login, error) {
		n := logins.Add(1)
		if broken.Load() {
			return nil, gopf.Permanent(fmt.Errorf("the login of attempt %d is broken", n))
		}
		return &gopf.Login{Config: tokens[min(int(n), 2)-1], Namespace: s.Name}, nil
	})
	d.handles(op, "ours")
	o := s.start(op, gopf.Cluster(nil)).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "ours create a")
	lively := watchful(t, "http://"+health+"/livez")

	broken.Store(true)
	s.Remove("v1/secrets", "s1")
	fields := 0
	kit.Await(t, "the token is refused", func() bool { // the server remembers tokens for 10 s
		fields++
		s.Patch(examples, "x", spec(fmt.Sprint(fields)))
		time.Sleep(200 * time.Millisecond)
		return logins.Load() > 1
	})
	waitPage(t, "http://"+health+"/readyz", 503, "rejected the credentials")
	o.Log.WaitFor(t, "The login failed; retrying.", "is broken")
	broken.Store(false)
	s.waitHandled("x", fmt.Sprint(fields))
	waitCode(t, "http://"+health+"/readyz", 200)
	s.Patch(examples, "x", spec("b"))
	d.WaitFor(t, "ours update b")
	if bad := lively(); len(bad) > 0 {
		t.Errorf("it was to be restarted: %q", bad)
	}
	o.Stop()
}

func TestALoginThatExpiresIsMadeAnewInTime(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.account("ours", serving()...)
	token := s.token("ours", "s1")
	var logins atomic.Int32
	op := newOperator()
	op.Settings.Posting.Enabled = false
	op.OnLogin("login", func(context.Context, *gopf.Activity) (*gopf.Login, error) {
		logins.Add(1)
		return &gopf.Login{Config: token, Expires: time.Now().Add(2 * time.Second)}, nil
	})
	d.handles(op, "ours")
	began := time.Now()
	o := s.start(op, gopf.Cluster(nil)).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "ours create a")
	kit.Await(t, "it logs in again and again", func() bool { return logins.Load() >= 4 })
	s.Patch(examples, "x", spec("b"))
	d.WaitFor(t, "ours update b")
	s.waitHandled("x", "b")
	o.Stop()
	if n, took := logins.Load(), time.Since(began); n > 20+2*int32(took/time.Second) {
		t.Errorf("it logged in %d times in %v", n, took)
	}
}

func TestAnOperatorThatCannotLogInDoesNotStart(t *testing.T) {
	for name, c := range map[string]struct {
		login func(context.Context, *gopf.Activity) (*gopf.Login, error)
		says  string
	}{
		"the handler fails": {func(context.Context, *gopf.Activity) (*gopf.Login, error) {
			return nil, gopf.Permanent(errors.New("no key"))
		}, "no key"},
		"there are no credentials": {func(context.Context, *gopf.Activity) (*gopf.Login, error) { return nil, nil }, "no usable credentials"},
		"they have expired already": {func(context.Context, *gopf.Activity) (*gopf.Login, error) {
			return &gopf.Login{Config: cluster, Expires: time.Now()}, nil
		}, "no usable credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			op.OnLogin("login", c.login)
			op.OnCleanup("cleanup", func(_ context.Context, a *gopf.Activity) error { d.Add("cleanup, API: %v", a.API != nil); return nil })
			d.handles(op, "ours")
			if err := s.start(op, gopf.Cluster(nil)).Wait(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
			d.Check(t, "cleanup, API: false")
		})
	}
}
