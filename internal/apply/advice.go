package apply

import (
	"net/http"
	"regexp"
	"strings"

	"gopf.dev/gopf/internal/kube"
)

// deniedBy finds the webhook in the message of the API server.
var deniedBy = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)

// Advice returns what to do about a change that the API server refused for good, as
// the end of a sentence; "" if there is nothing to say. managed is the name of the
// operator's own webhook configurations; "" if there are none.
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
		return "; this is the operator's own webhook: let its handler allow changes that the operator makes itself, which Review.User tells"
	case webhook != "":
		return "; change what the handler asks for, or let that webhook allow it"
	case status.Code == http.StatusForbidden:
		return "; grant the operator this permission, or change what the handler asks for"
	case status.Code == http.StatusRequestEntityTooLarge:
		return "; make the handler store less on the object"
	case status.Code == http.StatusUnprocessableEntity, status.Code == http.StatusBadRequest:
		return "; make the handler ask for what the schema of the resource allows, or change the schema"
	}
	return ""
}
