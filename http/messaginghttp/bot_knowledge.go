package messaginghttp

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/messaging/botsource"
	"bahi/http/api"
	"bahi/readmodels/messagingview"
)

// byFile names a file of a bot.
type byFile struct {
	ByBot

	FileID int64 `path:"fileId" minimum:"1" doc:"The file's id"`
}

// byURL names a page of a bot.
type byURL struct {
	ByBot

	URLID int64 `path:"urlId" minimum:"1" doc:"The page's id"`
}

const (
	maxFile   = 20 << 20 // CONTRACT.md D49
	limitFile = "bot_file"

	lookInterval = 300 * time.Millisecond // interval of reads of the states of a bot's files and pages
)

// botKnowledge registers the operations of bots' files and pages.
func (r *Routes) botKnowledge() {
	api.Handle(r.API, botOp("list-bot-files", "GET", "/{id}/files", "List the files of a bot, newest first"),
		func(ctx context.Context, in *struct {
			ByBot
			api.Limited
		}) (*api.Array[messagingview.BotFile], error) {
			if _, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID); err != nil {
				return nil, err
			}
			return api.Listed(r.Views.BotFiles(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID, in.Get()))
		})
	upload := botOp("add-bot-file", "POST", "/{id}/files", "Add a PDF or text file to a bot. Bahi indexes the file in the background.")
	upload.Expensive, upload.Limit, upload.MaxBody, upload.Errors = true, limitFile, maxFile, []int{http.StatusUnsupportedMediaType}
	api.Handle(r.API, upload, func(ctx context.Context, in *struct {
		ByBot
		File api.File
	}) (*api.Body[messagingview.BotFile], error) {
		data, err := io.ReadAll(in.File.Open())
		if err != nil {
			return nil, err
		}
		kind, err := botsource.MediaType(data)
		if err != nil {
			return nil, err
		}
		out, err := r.Flows.AddFile(ctx, api.Request(ctx), botsource.AddFile{Bot: in.ID, Name: in.File.Name, MediaType: kind}, data)
		return api.Reply(ctx, out, err, func(out commands.Outcome[botsource.State]) messagingview.BotFile {
			s := out.State
			return messagingview.BotFile{
				ID: out.Number(), FileName: s.Name, MimeType: s.MediaType, Size: s.Size, Status: s.Status, ChunkCount: s.Chunks,
				Error: orNull(s.Error), CreatedAt: out.CreatedAt,
			}
		})
	})
	api.Handle(r.API, botOp("delete-bot-file", "DELETE", "/{id}/files/{fileId}", "Delete a file of a bot with its index"),
		func(ctx context.Context, in *byFile) (*api.Nothing, error) {
			out, err := r.Flows.DeleteSource(ctx, api.Request(ctx), strconv.FormatInt(in.FileID, 10), botsource.Delete{Bot: in.ID})
			return api.Done(ctx, out, err)
		})
	api.Handle(r.API, botOp("list-bot-urls", "GET", "/{id}/urls", "List the pages of a bot, newest first"),
		func(ctx context.Context, in *struct {
			ByBot
			api.Limited
		}) (*api.Array[messagingview.BotURL], error) {
			if _, err := r.Views.Bot(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID); err != nil {
				return nil, err
			}
			return api.Listed(r.Views.BotURLs(ctx, api.At(ctx), api.Caller(ctx).Workspace, in.ID, in.Get()))
		})
	add := botOp("add-bot-url", "POST", "/{id}/urls", "Add a web page to a bot. Bahi fetches and indexes the page in the background.")
	add.Limit = limitFile
	api.Handle(r.API, add, func(ctx context.Context, in *struct {
		ByBot
		Body botsource.AddPage
	}) (*api.Body[messagingview.BotURL], error) {
		in.Body.Bot = in.ID
		out, err := r.Flows.AddPage(ctx, api.Request(ctx), in.Body)
		return api.Reply(ctx, out, err, shownPage)
	})
	refresh := botOp("refresh-bot-url", "POST", "/{id}/urls/{urlId}/refresh", "Fetch a page of a bot again")
	refresh.Limit, refresh.Status = limitFile, http.StatusOK
	api.Handle(r.API, refresh, func(ctx context.Context, in *byURL) (*api.Body[messagingview.BotURL], error) {
		out, err := r.Flows.RefreshPage(ctx, api.Request(ctx), in.ID, strconv.FormatInt(in.URLID, 10))
		return api.Reply(ctx, out, err, shownPage)
	})
	api.Handle(r.API, botOp("delete-bot-url", "DELETE", "/{id}/urls/{urlId}", "Delete a page of a bot with its index"),
		func(ctx context.Context, in *byURL) (*api.Nothing, error) {
			out, err := r.Flows.DeleteSource(ctx, api.Request(ctx), strconv.FormatInt(in.URLID, 10), botsource.Delete{Bot: in.ID, Page: true})
			return api.Done(ctx, out, err)
		})
	api.Stream(r.API, botOp("stream-bot-knowledge", "GET", "/{id}/knowledge/stream",
		"Stream the indexing progress of a bot's files and pages"),
		map[string]any{"knowledge": messagingview.Knowledge{}}, func(ctx context.Context, in *ByBot) (api.Source, error) {
			workspace := api.Caller(ctx).Workspace
			if _, err := r.Views.Bot(ctx, api.At(ctx), workspace, in.ID); err != nil {
				return nil, err
			}
			return func(ctx context.Context, send func(api.Event) error) error {
				return r.follow(ctx, workspace, in.ID, send)
			}, nil
		})
}

func shownPage(out commands.Outcome[botsource.State]) messagingview.BotURL {
	s := out.State
	p := messagingview.BotURL{ID: out.Number(), URL: s.URL, Status: s.Status, Title: orNull(s.Name), ChunkCount: s.Chunks,
		Error: orNull(s.Error), CreatedAt: out.CreatedAt}
	if !s.FetchedAt.IsZero() {
		p.LastFetchedAt = &s.FetchedAt
	}
	return p
}

// follow sends all sources first, then the changed ones.
func (r *Routes) follow(ctx context.Context, workspace uuid.UUID, bot int64, send func(api.Event) error) error {
	sent := map[int64]messagingview.Knowledge{}
	for ctx.Err() == nil {
		all, err := r.Views.Knowledge(ctx, api.At(ctx), workspace, bot)
		if err != nil {
			return err
		}
		for _, k := range all {
			if before, known := sent[k.ID]; known && before.Status == k.Status && before.ChunkCount == k.ChunkCount {
				continue
			}
			sent[k.ID] = k
			if err := send(api.Event{Data: k}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookInterval):
		}
	}
	return nil
}
