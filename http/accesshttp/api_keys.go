package accesshttp

import (
	"context"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/apikey"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/readmodels/accessview"
)

// createAPIKey is the body of a request for a new key.
type createAPIKey struct {
	WorkspaceID *uuid.UUID `json:"workspace_id,omitempty" doc:"Workspace of the key, if not the caller's; for operators only"`
	apikey.Create
}

// createdAPIKey is the response, the only one with the key itself.
type createdAPIKey struct {
	accessview.APIKey
	Key string `json:"key,omitempty" doc:"Shown once; a repeated request does not have it"`
}

var errOtherWorkspace = fault.New(fault.Forbidden, "Only an operator makes keys for another workspace")

// apiKeys registers the operations on API keys.
func (r *Routes) apiKeys() {
	api.Handle(r.API, api.Op{
		ID: "create-api-key", Method: "POST", Path: "/api/v1/api-keys", Summary: "Create an API key. Only this response has the key.",
		Tags: tags, Area: actor.Marketplace, Limit: "marketplace_general",
	}, func(ctx context.Context, in *struct{ Body createAPIKey }) (*api.Body[createdAPIKey], error) {
		c := in.Body.Create
		c.Now, c.Workspace = r.Now(), api.Caller(ctx).Workspace
		if other := in.Body.WorkspaceID; other != nil && *other != c.Workspace {
			if !api.Caller(ctx).Permissions.Operator {
				return nil, errOtherWorkspace
			}
			c.Workspace = *other
		}
		key, out, err := accesscmd.CreateAPIKey(ctx, r.Commands, api.Request(ctx).In(c.Workspace), c)
		return api.Reply(ctx, out, err, func(out commands.Outcome[apikey.State]) createdAPIKey {
			return createdAPIKey{Key: key, APIKey: accessview.APIKey{
				ID: uuid.MustParse(out.ID), WorkspaceID: out.State.Workspace, Name: out.State.Name, Permissions: out.State.Permissions,
				CreatedBy: out.State.By, ExpiresAt: out.State.ExpiresAt, CreatedAt: out.At,
			}}
		})
	})
	api.Handle(r.API, api.Op{
		ID: "list-api-keys", Method: "GET", Path: "/api/v1/api-keys", Summary: "List the workspace's API keys",
		Tags: tags, Area: actor.Marketplace, Limit: "marketplace_general", Reads: []string{"api_keys"},
	}, func(ctx context.Context, _ *struct{}) (*api.Body[[]accessview.APIKey], error) {
		return api.Answer(r.Views.APIKeys(ctx, api.At(ctx), api.Caller(ctx).Workspace))
	})
	api.Handle(r.API, api.Op{
		ID: "revoke-api-key", Method: "DELETE", Path: "/api/v1/api-keys/{api_key_id}", Summary: "Revoke an API key",
		Tags: tags, Area: actor.Marketplace, Limit: "marketplace_general",
	}, func(ctx context.Context, in *struct {
		ID uuid.UUID `path:"api_key_id" doc:"ID of the API key"`
	}) (*api.Nothing, error) {
		out, err := accesscmd.RevokeAPIKey(ctx, r.Commands, api.Request(ctx), in.ID)
		return api.Done(ctx, out, err)
	})
}
