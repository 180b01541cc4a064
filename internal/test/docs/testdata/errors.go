package p

import (
	"context"
	"errors"
)

var errBusy = errors.New("busy")

func reserve(ctx context.Context, key string) (string, error) { return "", nil }
func notify(ctx context.Context, name string) error           { return nil }
