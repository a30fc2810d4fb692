package app

import (
	"fmt"
	"time"

	"bahi/providers/egress"
	"bahi/providers/llm"
	"bahi/providers/llm/orders"
)

// modelSettings configure the language models. The zero value has none.
type modelSettings struct {
	ModelURL       string        `env:"LLM_BASE_URL" name:"llm-base-url" placeholder:"URL" example:"http://127.0.0.1:11434/v1" help:"Server of language models with the OpenAI protocol. Without it, rules read orders, and words find passages."`
	ModelKey       string        `env:"LLM_API_KEY" name:"llm-api-key" placeholder:"KEY" help:"API key, if the server requires one."`
	ModelName      string        `env:"LLM_MODEL" name:"llm-model" placeholder:"NAME" example:"qwen3:4b" help:"Model for texts."`
	VisionModel    string        `env:"LLM_VISION_MODEL" name:"llm-vision-model" placeholder:"NAME" help:"Model for pictures."`
	EmbeddingModel string        `env:"LLM_EMBEDDING_MODEL" name:"llm-embedding-model" placeholder:"NAME" help:"Model for vectors of texts."`
	ModelTimeout   time.Duration `env:"LLM_TIMEOUT" name:"llm-timeout" default:"30s" help:"Timeout of one call of a model."`
	ModelTokens    int64         `env:"LLM_MAX_TOKENS" name:"llm-max-tokens" default:"4096" unit:"tokens" help:"Maximum length of one response of a model."`
}

// model returns the client of the language models.
func (m modelSettings) model() (*llm.Client, error) {
	client, err := llm.New(llm.Config{
		BaseURL: m.ModelURL, Key: m.ModelKey, Model: m.ModelName, VisionModel: m.VisionModel, EmbeddingModel: m.EmbeddingModel,
		Timeout: m.ModelTimeout, MaxTokens: m.ModelTokens,
	})
	if err != nil {
		return nil, fmt.Errorf("LLM_BASE_URL, LLM_MODEL, LLM_TIMEOUT, LLM_MAX_TOKENS: %w", err)
	}
	return client, nil
}

// openModel connects the language models, and makes one of them read orders.
func (s *System) openModel() (err error) {
	if s.Model, err = s.Settings.Outside.model(); err != nil {
		return err
	}
	if !s.Model.Chats() && !s.Model.Sees() {
		return nil
	}
	exceptions, err := egress.Parse(s.Settings.Outside.FetchAllow)
	if err != nil {
		return fmt.Errorf("BAHI_FETCH_ALLOW: %w", err)
	}
	s.Books.Reader = orders.Reader{Model: s.Model, Fetch: exceptions.Client()}
	return nil
}
