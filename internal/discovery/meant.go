package discovery

import (
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/suggest"
	"gopf.dev/gopf/kind"
)

// meant returns " (did you mean X?)" with the resource of the cluster whose name is
// closest to the requested one, or an empty string if none is close. It considers one
// misspelled part: the name, the group or the version.
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
				in = scope // another version is a small difference
			case !strings.EqualFold(n, name):
				continue // only one part may be misspelled
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
