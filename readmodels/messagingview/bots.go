package messagingview

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botwebhook"
	"bahi/readmodels"
)

// Bot replies to messages of contacts.
type Bot struct {
	ID              int64     `json:"id" doc:"ID of the bot"`
	OwnerID         *string   `json:"ownerId" doc:"ID of the user who created the bot; null: an API key created it, or the user is erased"`
	Name            string    `json:"name" doc:"Name of the bot"`
	Description     string    `json:"description" doc:"Description of the bot"`
	SystemPrompt    string    `json:"systemPrompt" doc:"Instructions for the language model"`
	ColorTheme      string    `json:"colorTheme" enum:"blue,indigo,purple,green,red,orange,yellow" doc:"Colour theme of the widget"`
	FallbackMessage *string   `json:"fallbackMessage" doc:"Text sent at a hand-over; null: a default text in the customer's language"`
	Active          bool      `json:"active" doc:"false: switched off"`
	ChannelIDs      []int64   `json:"channelIds" doc:"IDs of the bot's channels"`
	FileCount       int64     `json:"fileCount" doc:"Number of files"`
	URLCount        int64     `json:"urlCount" doc:"Number of pages"`
	CreatedAt       time.Time `json:"createdAt" doc:"Time when the bot was created"`
	UpdatedAt       time.Time `json:"updatedAt" doc:"Time of the last change of the bot"`
	Revision        int64     `json:"revision" doc:"Revision for If-Match"`
}

// BotFilter selects bots. An empty field matches all.
type BotFilter struct {
	Active string `query:"active" enum:"true,false"`
	Owner  string
}

const botColumns = `select id, owner_id, name, description, system_prompt, color_theme, fallback_message, active, channel_ids,
	(select count(*) from bots.source where bot_id = bot.id and url is null) as file_count, (select count(*) from bots.source
		where bot_id = bot.id and url is not null) as url_count,
	created_at, updated_at, revision from bots.bot`

// Bot reads a bot of a workspace, or returns [bot.ErrNotFound].
func (v *Views) Bot(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (Bot, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "bots"), bot.ErrNotFound, pgx.RowToStructByName[Bot],
		botColumns+` where id = $1 and workspace_id = $2`,
		id, workspace)
}

// Bots lists a page of a workspace's bots, newest first.
func (v *Views) Bots(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f BotFilter) (rows []Bot,
	total int64, err error) {
	return readmodels.List[Bot]{
		As: pgx.RowToStructByName[Bot], Order: `id desc`, SQL: botColumns + `
			where workspace_id = @workspace and (@active = '' or active = (@active = 'true')) and (@owner = '' or owner_id = @owner)`,
		Args: pgx.NamedArgs{"workspace": workspace, "active": f.Active, "owner": f.Owner},
	}.Page(ctx, v.Reader.From(at, "bots"), page)
}

// BotTools lists the tools of a bot, by their ids.
func (v *Views) BotTools(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) ([]int64, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "bots"), bot.ErrNotFound, pgx.RowTo[[]int64],
		`select tools from bots.bot where id = $1 and workspace_id = $2`, id, workspace)
}

// BotsOf lists the ids of the active bots of a channel, by their ids.
func (v *Views) BotsOf(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel int64) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "bots"), pgx.RowTo[int64],
		`select id from bots.bot where workspace_id = $1 and active and $2::bigint = any(channel_ids) order by id`, workspace, channel)
}

// BotFile is a file of a bot's knowledge.
type BotFile struct {
	ID         int64     `json:"id" doc:"ID of the file"`
	FileName   string    `json:"fileName" doc:"Name of the file"`
	MimeType   string    `json:"mimeType" doc:"Media type"`
	Size       int64     `json:"size" doc:"Size in bytes"`
	Status     string    `json:"status" enum:"processing,ready,failed" doc:"Status of the file"`
	ChunkCount int64     `json:"chunkCount" doc:"Number of indexed passages"`
	Error      *string   `json:"error" doc:"Error; null: none"`
	CreatedAt  time.Time `json:"createdAt" doc:"Time when the file was created"`
}

// BotURL is a page of a bot's knowledge.
type BotURL struct {
	ID            int64      `json:"id" doc:"ID of the page"`
	URL           string     `json:"url" doc:"URL of the page"`
	Status        string     `json:"status" enum:"processing,ready,failed" doc:"Status of the page"`
	Title         *string    `json:"title" doc:"Title of the page; null: none"`
	ChunkCount    int64      `json:"chunkCount" doc:"Number of indexed passages"`
	Error         *string    `json:"error" doc:"Error; null: none"`
	LastFetchedAt *time.Time `json:"lastFetchedAt" doc:"Time of the last fetch; null: none"`
	CreatedAt     time.Time  `json:"createdAt" doc:"Time when the page was created"`
}

const (
	fileColumns = `select id, name as file_name, media_type as mime_type, size, status, chunk_count, error, created_at from bots.source
		where bot_id = @bot and workspace_id = @workspace and url is null`
	pageColumns = `select id, url, status, name as title, chunk_count, error, fetched_at as last_fetched_at, created_at from bots.source
		where bot_id = @bot and workspace_id = @workspace and url is not null`
)

// BotFiles lists a page of a bot's files, newest first.
func (v *Views) BotFiles(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64, page readmodels.Page) (rows []BotFile,
	total int64,
	err error) {
	return readmodels.List[BotFile]{
		As: pgx.RowToStructByName[BotFile], Order: `id desc`, SQL: fileColumns, Args: pgx.NamedArgs{"bot": of, "workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "bots"), page)
}

// BotURLs lists a page of a bot's pages, newest first.
func (v *Views) BotURLs(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64, page readmodels.Page) (rows []BotURL,
	total int64, err error) {
	return readmodels.List[BotURL]{
		As: pgx.RowToStructByName[BotURL], Order: `id desc`, SQL: pageColumns, Args: pgx.NamedArgs{"bot": of, "workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "bots"), page)
}

// Knowledge is the state of a file or a page of a bot's knowledge.
type Knowledge struct {
	Type       string  `json:"type" enum:"file,url" doc:"Type: file or url"`
	ID         int64   `json:"id" doc:"ID of the file or page"`
	Status     string  `json:"status" enum:"processing,ready,failed" doc:"Status of the file or page"`
	ChunkCount int64   `json:"chunkCount" doc:"Number of indexed passages"`
	Error      *string `json:"error" doc:"Error; null: none"`
}

// Knowledge lists the states of a bot's files and pages.
func (v *Views) Knowledge(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64) ([]Knowledge, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "bots"), pgx.RowToStructByName[Knowledge], `
		select case when url is null then 'file' else 'url' end as type, id, status, chunk_count, error from bots.source
		where bot_id = $1 and workspace_id = $2 order by id`, of, workspace)
}

// BotWebhook is an endpoint that a bot may call.
type BotWebhook struct {
	ID          int64              `json:"id" doc:"ID of the webhook"`
	Name        string             `json:"name" doc:"Name of the webhook"`
	URL         string             `json:"url" doc:"URL that the bot calls"`
	Method      string             `json:"method" enum:"GET,POST,PUT,PATCH,DELETE" doc:"HTTP method"`
	Description string             `json:"description" doc:"Description for the language model"`
	Headers     map[string]string  `json:"headers" doc:"The values are not shown"`
	QueryParams map[string]string  `json:"queryParams" doc:"The values are not shown"`
	JSONData    json.RawMessage    `json:"jsonData" doc:"The values are not shown; null: none"`
	Active      bool               `json:"active" doc:"false: switched off"`
	Parameters  []WebhookParameter `json:"parameters" doc:"Parameters of the call"`
	CreatedAt   time.Time          `json:"createdAt" doc:"Time when the webhook was created"`
	UpdatedAt   time.Time          `json:"updatedAt" doc:"Time of the last change of the webhook"`
	Revision    int64              `json:"revision" doc:"Revision for If-Match"`
}

// WebhookParameter is a value of a call.
type WebhookParameter struct {
	Name     string `json:"name" doc:"Name of the parameter"`
	DataType string `json:"dataType" enum:"string,number,date,datetime" doc:"Type of the value"`
	Type     string `json:"type" enum:"query_param,post_data,path_param" doc:"Place of the parameter"`
	Source   string `json:"source" enum:"by_ai,fixed" doc:"Source of the value"`
	Value    string `json:"value,omitempty" doc:"Value of a fixed parameter; not shown"`
}

// ShownWebhook returns a webhook without its secrets.
func ShownWebhook(id int64, s botwebhook.State, began, at time.Time, revision int64) BotWebhook {
	w := BotWebhook{
		ID: id, Name: s.Name, URL: s.URL, Method: s.Method, Description: s.Description, Active: s.Active, CreatedAt: began, UpdatedAt: at,
		Revision: revision,
		Headers:  starred(s.Headers), QueryParams: starred(s.Query), Parameters: []WebhookParameter{}, JSONData: json.RawMessage("null"),
	}
	if len(s.JSON) > 0 {
		w.JSONData, _ = json.Marshal(starred(s.JSON)) //nolint:errchkjson // texts
	}
	for _, p := range s.Parameters {
		shown := WebhookParameter{Name: p.Name, DataType: p.DataType, Type: p.Place, Source: p.Source}
		if p.Source == botwebhook.Fixed {
			shown.Value = botwebhook.Stars
		}
		w.Parameters = append(w.Parameters, shown)
	}
	return w
}

// starred returns named values with each value replaced by stars.
func starred(all []botwebhook.Header) map[string]string {
	shown := map[string]string{}
	for _, h := range all {
		shown[h.Name] = botwebhook.Stars
	}
	return shown
}

// BotWebhooks lists a page of a bot's webhooks, newest first.
func (v *Views) BotWebhooks(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64, page readmodels.Page) (rows []BotWebhook,
	total int64, err error) {
	return readmodels.List[BotWebhook]{As: asWebhook, Order: `id desc`, SQL: `
		select id, name, url, method, description, headers, query_params, json_data, parameters, active, created_at, updated_at, revision
		from bots.webhook where bot_id = @bot and workspace_id = @workspace`, Args: pgx.NamedArgs{"bot": of, "workspace": workspace},
	}.Page(ctx, v.Reader.From(at, "bots"), page)
}

// CallableWebhooks lists the ids of a bot's active webhooks, by their ids.
func (v *Views) CallableWebhooks(ctx context.Context, at *readmodels.At, workspace uuid.UUID, of int64) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "bots"), pgx.RowTo[int64],
		`select id from bots.webhook where bot_id = $1 and workspace_id = $2 and active
		order by id`, of, workspace)
}

func asWebhook(row pgx.CollectableRow) (BotWebhook, error) {
	var (
		id, revision int64
		names        [3][]string
		began, at    time.Time
		s            botwebhook.State
	)
	err := row.Scan(&id, &s.Name, &s.URL, &s.Method, &s.Description, &names[0], &names[1], &names[2], &s.Parameters, &s.Active,
		&began, &at, &revision)
	for i, list := range []*[]botwebhook.Header{&s.Headers, &s.Query, &s.JSON} {
		for _, name := range names[i] {
			*list = append(*list, botwebhook.Header{Name: name})
		}
	}
	return ShownWebhook(id, s, began, at, revision), err
}
