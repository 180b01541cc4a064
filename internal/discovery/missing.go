package discovery

import (
	"context"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/kube"
)

// WarnOfMissing logs a warning for each namespace that does not exist. The name may be
// mistyped, and API servers return an empty list for such a namespace, not an error.
func WarnOfMissing(ctx context.Context, client *kube.Client, names []string, log *slog.Logger) {
	client = client.WithBackoffs(nil) // other errors show up in the watches
	for _, name := range names {
		_, err := client.Get(ctx, kube.Target{Info: NamespaceInfo(), Name: name})
		if apierrors.IsNotFound(err) {
			log.Warn(fmt.Sprintf("The namespace '%s' does not exist. Its objects will be handled when it is created.", name))
		}
	}
}
