package observe

import (
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/suggest"
	"gopf.dev/gopf/kind"
)

// meant returns " (did you mean X?)" for the resource of the cluster that is most
// like the one that a handler asks for; "" if none is like it. Either the name is
// misspelt, or the group or the version, but not all of them.
func meant(asked string, cluster []kind.Info) string {
	words := map[string]kind.Info{}
	var known []string
	scope, name := "", asked
	if i := strings.LastIndex(asked, "/"); i >= 0 {
		scope, name = asked[:i], asked[i+1:]
	}
	for _, info := range cluster {
		names := append([]string{info.Plural, info.Singular, info.Kind}, info.ShortNames...)
		for _, n := range names {
			if n == "" || len(n) < 3 && n != name {
				continue
			}
			in := info.APIVersion()
			switch {
			case scope == "", scope == in, scope == info.Group:
				in = scope
			case strings.EqualFold(n, name) && info.Group != "" && strings.HasPrefix(scope, info.Group+"/"):
				in = scope // versions may be less alike
			case !strings.EqualFold(n, name):
				continue // it is enough that one of them is misspelt
			}
			word := strings.TrimPrefix(in+"/"+n, "/")
			if _, there := words[word]; !there {
				known = append(known, word)
				words[word] = info
			}
		}
	}
	word := suggest.Closest(asked, known)
	if word == "" {
		return ""
	}
	info := words[word]
	return fmt.Sprintf(" (did you mean %q?)", strings.TrimPrefix(info.APIVersion()+"/"+info.Plural, "/"))
}
