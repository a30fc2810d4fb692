package messagingview

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/messaging/template"
	"bahi/readmodels"
)

// Template is a message that a chat network has approved.
type Template struct {
	ID         int64    `json:"id" doc:"ID of the template"`
	Name       string   `json:"name" doc:"Name of the template"`
	Language   string   `json:"language" doc:"Language code"`
	Category   string   `json:"category" doc:"Category at the network"`
	Status     string   `json:"status" doc:"Status at the network"`
	Format     string   `json:"parameterFormat" enum:"positional,named" doc:"Format of the parameters"`
	Parameters []string `json:"parameters" doc:"Names of the required values"`
	Body       string   `json:"body" doc:"Text with its parameters"`
	ChannelID  int64    `json:"channelId" doc:"ID of the channel"`
}

// TemplateFilter selects templates that match all of its fields. An empty field matches all.
type TemplateFilter struct {
	Language  string `query:"language" maxLength:"20" doc:"Only this language"`
	Category  string `query:"category" maxLength:"40" doc:"Only this category"`
	ChannelID int64  `query:"channelId" minimum:"1" doc:"Only of this channel"`
}

// Templates lists a page of the templates of a workspace that can be sent, newest first.
func (v *Views) Templates(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page,
	f TemplateFilter) (rows []Template,
	total int64, err error) {
	return readmodels.List[Template]{As: pgx.RowToStructByName[Template], Order: `id desc`, SQL: `
		select id, name, language, category, status, format, parameters, body, channel_id from templates.template
		where workspace_id = @workspace and status = any(@status) and (@language = '' or language = @language)
			and (@category = '' or upper(category) = upper(@category)) and (@channel::bigint = 0 or channel_id = @channel)`,
		Args: pgx.NamedArgs{
			"workspace": workspace, "status": template.Sendable, "language": f.Language, "category": f.Category, "channel": f.ChannelID,
		},
	}.Page(ctx, v.Reader.From(at, "templates"), page)
}

// TemplateIDs returns the ids of a channel's templates by the network's ids, in any status.
func (v *Views) TemplateIDs(ctx context.Context, workspace uuid.UUID, channel int64) (map[string]int64, error) {
	type named struct {
		ProviderID string
		ID         int64
	}
	rows, err := readmodels.Rows(ctx, v.Reader.From(nil, "templates"), pgx.RowToStructByPos[named],
		`select provider_id, id from templates.template where workspace_id = $1 and channel_id = $2`, workspace, channel)
	ids := make(map[string]int64, len(rows))
	for _, row := range rows {
		ids[row.ProviderID] = row.ID
	}
	return ids, err
}
