package apply

import (
	"net/http"
	"regexp"
	"strings"

	"gopf.dev/gopf/internal/kube"
)

// deniedBy finds the name of the webhook in a message of the API server.
var deniedBy = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)

// Advice returns advice about a change that the API server refused, as the end of a
// sentence. It is empty if there is none. managed is the name of the operator's own
// webhook configurations; "" means none.
func Advice(err error, managed string) string {
	status, responded := kube.Refused(err)
	if !responded {
		return ""
	}
	webhook := ""
	if found := deniedBy.FindStringSubmatch(status.Message); found != nil {
		webhook = found[1]
	}
	switch {
	case webhook != "" && managed != "" && strings.HasSuffix(webhook, "."+managed):
		return "; this is the operator's own webhook: let its handler allow the operator's own writes (check Review.User)"
	case webhook != "":
		return "; change the handler's patch, or configure that webhook to allow it"
	case status.Code == http.StatusForbidden:
		return "; grant the operator this permission, or change the handler's patch"
	case status.Code == http.StatusRequestEntityTooLarge:
		return "; make the handler store less on the object"
	case status.Code == http.StatusUnprocessableEntity, status.Code == http.StatusBadRequest:
		return "; make the handler's patch fit the schema of the resource, or change the schema"
	}
	return ""
}
