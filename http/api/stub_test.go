package api_test

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"bahi/http/api"
)

func none[I any](context.Context, *I) (*api.Nothing, error) { return &api.Nothing{}, nil }

// brokenHandler begins a response and then fails.
func brokenHandler(context.Context, *struct{}) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, _ = ctx.BodyWriter().Write(make([]byte, 1<<16))
		panic("secret: in the middle")
	}}, nil
}

func varyHandler(_ context.Context, in *struct{ Body varied }) (*api.Body[varied], error) {
	return api.Answer(in.Body, nil)
}

// These limit the wait for effects after a response, and its polling.
const (
	wait = 30 * time.Second
	tick = time.Millisecond
)
