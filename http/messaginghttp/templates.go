package messaginghttp

import (
	"context"

	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// Templates registers the operations of templates of chat channels.
func (r *Routes) Templates() {
	api.Handle(r.API, api.Op{
		ID: "list-templates", Method: "GET", Path: "/api/chat/templates",
		Summary: "List the approved templates, newest first. Bahi asks the networks at most once an hour.",
		Tags:    tags, Area: area, Limit: limit, Reads: []string{"templates", "channels"}, Errors: []int{502, 503},
	}, func(ctx context.Context, in *struct {
		api.Limited
		messagingview.TemplateFilter
	}) (*api.Array[messagingview.Template], error) {
		workspace := api.Caller(ctx).Workspace
		channels := []int64{in.ChannelID}
		if in.ChannelID == 0 {
			var err error
			if channels, err = r.Views.Networked(ctx, api.At(ctx), workspace); err != nil {
				return nil, err
			}
		}
		late, err := r.ChatTemplates.Refresh(ctx, workspace, channels)
		if err != nil {
			return nil, err
		}
		rows, total, err := r.Views.Templates(ctx, api.At(ctx), workspace, in.Get(), in.TemplateFilter)
		if late {
			api.At(ctx).MarkIncomplete()
		}
		return api.Listed(rows, total, err)
	})
}
