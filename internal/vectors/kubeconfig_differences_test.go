package vectors_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/internal/kube"
)

// kubeconfigDifference is a way in which client-go and kubectl, and so we, take
// a kubeconfig differently.
type kubeconfigDifference struct {
	why string
	// fails is a part of our error if we do not take it at all.
	fails string
	// mend changes a cluster or a user so that we take it as the case says, and
	// what the case wants where we have something else. It tells whether it is
	// about this one.
	mend func(body, want map[string]any) bool
}

// The differences in all cases: the priority of the built-in login is 0, as
// there is only one, and proxies are taken from the environment, too
// (trust_env).
var kubeconfigDifferences = map[string][]kubeconfigDifference{
	"cluster": {
		{"a cluster needs a server", "no server found", func(body, want map[string]any) bool {
			if body["server"] != nil {
				return false
			}
			body["server"], want["server"] = "https://s", "https://s"
			return true
		}},
		{"no credentials are sent to a server without TLS", "", func(body, want map[string]any) bool {
			if server := body["server"].(string); !strings.Contains(server, "://") {
				body["server"], want["server"] = "https://"+server, "https://"+server
				return true
			}
			return false
		}},
		{"files must exist", "unable to read certificate-authority", belowFolder("certificate-authority", "ca_path")},
		{"tls-server-name is used", "", alsoHas("tls-server-name", "server_name")},
	},
	"user": {
		{"there may be only one of token and password", "more than one authentication method found", func(body, want map[string]any) bool {
			both := body["token"] != nil && body["username"] != nil
			if both {
				for _, field := range []string{"username", "password"} {
					delete(body, field)
					delete(want, field)
				}
			}
			return both
		}},
		{"certificates need keys", "client-key-data or client-key must be specified", without("client-certificate", "certificate", "client-key")},
		{"keys without certificates are not used", "", without("client-key", "private_key", "client-certificate")},
		{"files must exist", "unable to read client-cert", belowFolder("client-certificate", "certificate_path")},
		{"files must exist", "unable to read client-key", belowFolder("client-key", "private_key_path")},
		{"token files are used, and must exist without a token", "no such file", func(body, want map[string]any) bool {
			lone := body["tokenFile"] != nil && body["token"] == nil && body["auth-provider"] == nil
			if lone {
				belowFolder("tokenFile", "token_file")(body, want)
				want["token"] = content
			}
			return lone
		}},
		{"token files are used", "", alsoHas("tokenFile", "token_file")},
		{"impersonation is used", "", alsoHas("as", "impersonate")},
		{"plugins are used, and need a version and a mode", "must be specified for u to use exec", func(body, want map[string]any) bool {
			exec, ok := body["exec"].(map[string]any)
			if ok {
				exec["apiVersion"], exec["interactiveMode"] = "client.authentication.k8s.io/v1", "Never"
				want["exec"] = exec["command"]
			}
			return ok
		}},
	},
}

// without takes away one of two things, given by path or by data, if the other one
// is not there.
func without(field, wanted, other string) func(body, want map[string]any) bool {
	has := func(body map[string]any, field string) bool { return body[field] != nil || body[field+"-data"] != nil }
	return func(body, want map[string]any) bool {
		lone := has(body, field) && !has(body, other)
		if lone {
			delete(body, field)
			delete(body, field+"-data")
			delete(want, wanted+"_path")
			delete(want, wanted+"_data")
		}
		return lone
	}
}

// belowFolder has a file looked for where there is one: relative paths are
// those from the folder of the kubeconfig.
func belowFolder(field, wanted string) func(body, want map[string]any) bool {
	return func(body, want map[string]any) bool {
		path, _ := body[field].(string)
		if path != "" {
			path = strings.TrimPrefix(path, "/")
			body[field], want[wanted] = path, path
		}
		return path != ""
	}
}

func alsoHas(field, wanted string) func(body, want map[string]any) bool {
	return func(body, want map[string]any) bool {
		if body[field] != nil {
			want[wanted] = body[field]
		}
		return body[field] != nil
	}
}

// mended makes kubeconfigs of those of a case that we take as it says, and
// returns our errors before that. Only the cluster and the user of the current
// context count.
func mended(t *testing.T, texts []string, want map[string]any) (mended, fails []string) {
	t.Helper()
	var files []map[string]any
	for _, text := range texts {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	context := bodyOf(first(files, "contexts", current(files)), "context")
	for part, differences := range kubeconfigDifferences {
		name, _ := context[part].(string)
		fields := bodyOf(first(files, part+"s", name), part)
		for _, d := range differences {
			if d.mend(fields, want) && d.fails != "" {
				fails = append(fails, d.fails)
			}
		}
	}
	for _, file := range files {
		raw, err := yaml.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		mended = append(mended, string(raw))
	}
	return mended, fails
}

// current is the name of the current context: the first one that is given.
func current(files []map[string]any) string {
	for _, file := range files {
		if name, given := file["current-context"].(string); given {
			return name
		}
	}
	return ""
}

// first is the entry of that name in the first file that has one.
func first(files []map[string]any, list, name string) map[string]any {
	for _, file := range files {
		entries, _ := file[list].([]any)
		for _, entry := range entries {
			if named := stringMap(entry); named["name"] == name {
				return named
			}
		}
	}
	return map[string]any{}
}

// bodyOf is what an entry says, which may be changed there. A null is the same as
// nothing.
func bodyOf(entry map[string]any, part string) map[string]any {
	if stringMap(entry[part]) == nil {
		entry[part] = map[string]any{}
	}
	return stringMap(entry[part])
}

var (
	missingKey = regexp.MustCompile(`^KeyError: '(.*)'$`)
	bothGiven  = regexp.MustCompile(`Both (.*) path & data are set`)
)

// isLike reports whether our error is about the same mistake as that of Kopf. They
// are known by their types: a missing context is a LoginError, a dangling
// reference is a KeyError, a path beside data is a ValueError, and whatever else
// is a file that cannot be read.
//
// The difference: a context without a user is taken, and has no credentials.
func isLike(t *testing.T, kopfs string, err error) bool {
	t.Helper()
	problem, _ := errors.AsType[*kube.ConfigError](err)
	if problem == nil {
		return kopfs == "KeyError: 'user'" && err == nil
	}
	switch {
	case strings.HasPrefix(kopfs, "LoginError:"):
		return problem.Problem == kube.ConfigNoContext
	case kopfs == "KeyError: ''": // an empty text names no context
		return problem.Problem == kube.ConfigNoContext || strings.Contains(problem.Detail, `""`)
	case kopfs == "KeyError: 'cluster'" && problem.Problem == kube.ConfigNoCluster: // it names none at all
		return true
	case missingKey.MatchString(kopfs):
		dangling := problem.Problem == kube.ConfigDangling || problem.Problem == kube.ConfigNoCluster || problem.Problem == kube.ConfigNoUser
		return dangling && strings.Contains(problem.Detail, strconv.Quote(missingKey.FindStringSubmatch(kopfs)[1]))
	case bothGiven.MatchString(kopfs):
		what := bothGiven.FindStringSubmatch(kopfs)[1]
		field := map[string]string{"CA": "certificate-authority", "certificate": "client-cert", "private key": "client-key"}[what]
		return problem.Problem == kube.ConfigUnusable && field != "" && strings.Contains(err.Error(), field+"-data and "+field+" are both specified")
	}
	return problem.Problem == kube.ConfigBroken
}
