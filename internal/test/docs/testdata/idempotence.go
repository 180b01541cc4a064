package p

import "context"

type CreateRequest struct {
	IdempotencyKey string
	Size           int
}

type cloudClient struct{}

func (cloudClient) CreateDatabase(context.Context, CreateRequest) (string, error) { return "", nil }

var cloud cloudClient
