package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bahi/commands/ledgercmd"
	"bahi/commands/messagingcmd"
	"bahi/commands/messagingcmd/answering"
	"bahi/commands/messagingcmd/knowledge"
	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/unit"
	"bahi/providers/llm/orders"
	"bahi/providers/pdftext"
	"bahi/providers/webpage"
	"bahi/reactors/messagingreact"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/marketplaceview"
)

// botSettings configure bots.
type botSettings struct {
	Coverage float64 `env:"BOT_MIN_COVERAGE" name:"bot-min-coverage" default:"0.5" unit:"part of 1" help:"Minimum part of a question's words, weighted by rarity, in a passage that a bot without a model quotes."`
}

// bots has the parts of bots.
type bots struct {
	flows     *messagingcmd.Bots
	engine    *answering.Engine
	knowledge *messagingreact.Knowledge
	answers   *messagingreact.Answers
}

// openBots connects bots with their knowledge, models and endpoints.
func (s *System) openBots(ctx context.Context) {
	store := &knowledge.Store{Pool: s.Pool, Model: s.Model}
	if store.Model.Embeds() != "" {
		if err := store.UsePgvector(ctx); err != nil {
			s.Log.Warn("pgvector is missing; comparing vectors without it", "error", err)
		}
	}
	s.bots.flows = &messagingcmd.Bots{Commands: s.Commands, Blobs: s.Blobs}
	s.bots.engine = &answering.Engine{
		Commands: s.Commands, Knowledge: store, Model: s.Model, Views: botViews{s}, Secrets: s.Vault, Client: s.outside.exceptions.Client(),
		Zone: s.Zone, Coverage: cmp.Or(s.Settings.Outside.Coverage, 0.5), Patience: answering.CallTimeout,
	}
	s.bots.knowledge = &messagingreact.Knowledge{Reading: &knowledge.Indexer{
		Commands: s.Commands, Store: store, Blobs: s.Blobs, Pages: webpage.New(s.outside.exceptions), Now: time.Now,
		PDFs: &pdftext.Reader{Tool: func(ctx context.Context) (pdftext.Tool, error) {
			t, err := s.Tools.Tools(ctx)
			return pdftext.Tool{Path: t.PDFToText, Env: t.Env}, err
		}},
	}}
	s.bots.answers = &messagingreact.Answers{Commands: s.Commands, Engine: s.bots.engine, Messages: s.Messages, Views: s.Messaging,
		Pool: s.Pool, Balances: s.Confirming.Answers}
}

// Knowledge returns the reader of files and pages for bots.
func (s *System) Knowledge() *knowledge.Indexer { return s.bots.knowledge.Reading }

// botViews adapts the views to the engine's.
type botViews struct{ *System }

// upTo returns a context for the reads of a reply: the state at a position, or for 0 the newest state.
func upTo(asOf event.Position) *readmodels.At {
	if asOf == 0 {
		return nil
	}
	return new(readmodels.At).AsKnownAt(asOf)
}

// Sources implements the engine's Views.
func (v botViews) Sources(ctx context.Context, asOf event.Position, workspace uuid.UUID, of int64) ([]answering.Source, error) {
	rows, err := v.Messaging.BotSources(ctx, upTo(asOf), workspace, of)
	sources := make([]answering.Source, len(rows))
	for i, row := range rows {
		sources[i] = answering.Source(row)
	}
	return sources, err
}

// Webhooks implements the engine's Views.
func (v botViews) Webhooks(ctx context.Context, asOf event.Position, workspace uuid.UUID, of int64) ([]int64, error) {
	return v.Messaging.CallableWebhooks(ctx, upTo(asOf), workspace, of)
}

// Products implements the engine's Views: it searches the products of the workspace's companies.
func (v botViews) Products(ctx context.Context, asOf event.Position, workspace uuid.UUID, words string) (any, error) {
	type product struct {
		Name         string  `json:"name"`
		Description  *string `json:"description,omitempty"`
		Category     *string `json:"category,omitempty"`
		Price        string  `json:"price"`
		MOQ          int64   `json:"least_quantity"`
		Availability string  `json:"availability"`
	}
	const most = 5
	found := []product{}
	companies, err := v.Marketplace.OwnCompanies(ctx, upTo(asOf), workspace)
	for _, company := range companies {
		rows, err := readmodels.Complete(func(at *readmodels.At) ([]marketplaceview.Product, error) {
			rows, _, err := v.Marketplace.Products(ctx, at, readmodels.Page{Number: 1, Size: most},
				marketplaceview.ProductFilter{Company: &company, Search: words})
			return rows, err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			found = append(found, product{p.Name, p.Description, p.Category,
				fmt.Sprintf("%s %d.%02d", p.PriceCurrency, p.PriceAmount/100, p.PriceAmount%100), p.MOQ, p.Availability})
		}
	}
	return found, err
}

// Orders implements the engine's Views.
func (v botViews) Orders(ctx context.Context, workspace uuid.UUID, phone string) (any, error) {
	type status struct {
		Slip      *book.Text  `json:"slip_number"`
		Status    string      `json:"status"`
		Delivered *unit.Grams `json:"delivered_grams"`
		Pending   *unit.Grams `json:"pending_grams"`
	}
	sender, err := ledgercmd.SenderID(ctx, v.System.Commands, phone)
	if err != nil {
		return nil, err
	}
	orders, err := readmodels.Complete(func(at *readmodels.At) ([]ledgerview.ClientOrder, error) {
		return v.Ledger.OrdersOfSender(ctx, at, workspace, sender)
	})
	if err != nil || len(orders) == 0 {
		return "not found", err
	}
	all := make([]status, len(orders))
	for i, o := range orders {
		all[i] = status{o.Slip, o.Status, o.Delivered, o.Pending}
	}
	return all, nil
}

// Companies implements the engine's Views.
func (v botViews) Companies(ctx context.Context, asOf event.Position, workspace uuid.UUID) ([]uuid.UUID, error) {
	return v.Marketplace.OwnCompanies(ctx, upTo(asOf), workspace)
}

// modelSettings configure the language models. The zero value has none.
type modelSettings struct {
	ModelURL       string        `env:"LLM_BASE_URL" name:"llm-base-url" placeholder:"URL" example:"http://127.0.0.1:11434/v1" help:"Server of language models with the OpenAI protocol. Without it, orders are read by rules, and passages found by words."`
	ModelKey       string        `env:"LLM_API_KEY" name:"llm-api-key" placeholder:"KEY" help:"API key, if the server requires one."`
	ModelName      string        `env:"LLM_MODEL" name:"llm-model" placeholder:"NAME" example:"qwen3:4b" help:"Model for texts."`
	VisionModel    string        `env:"LLM_VISION_MODEL" name:"llm-vision-model" placeholder:"NAME" example:"qwen2.5vl:7b" help:"Model for pictures."`
	EmbeddingModel string        `env:"LLM_EMBEDDING_MODEL" name:"llm-embedding-model" placeholder:"NAME" example:"nomic-embed-text" help:"Model for vectors of texts."`
	ModelTimeout   time.Duration `env:"LLM_TIMEOUT" name:"llm-timeout" default:"30s" help:"Timeout of one call of a model."`
	ModelTokens    int64         `env:"LLM_MAX_TOKENS" name:"llm-max-tokens" default:"4096" unit:"tokens" help:"Maximum length of one response of a model."`
}

// openModel connects the language models. One of them reads orders.
func (s *System) openModel() {
	s.Model = s.outside.model
	if s.Model.Chats() || s.Model.Sees() {
		s.Books.Reader = orders.Reader{Model: s.Model, Fetch: s.outside.exceptions.Client()}
	}
}
