package llm

import (
	"context"
	"encoding/json"
	"slices"
)

const (
	maxEmbedded = 64 // texts of one call
	maxLong     = 16384
)

// Embed returns a vector for each text, all of one length. It returns [ErrNoModel], an [*Error], or the context's error.
func (c *Client) Embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	if c.Embeds() == "" {
		return nil, ErrNoModel
	}
	for batch := range slices.Chunk(texts, maxEmbedded) {
		body, err := c.post(ctx, "embeddings", embeddingRequest{Model: c.config.EmbeddingModel, Input: batch})
		if err != nil {
			return nil, err
		}
		some, ok := vectorsOf(body, len(batch))
		if !ok || len(vectors) > 0 && len(some[0]) != len(vectors[0]) {
			return nil, &Error{Reason: "sent no vectors that can be read", Down: true}
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

// vectorsOf reads a number of vectors of one length. If the server numbers them, that is their order.
func vectorsOf(body []byte, count int) ([][]float32, bool) {
	var read struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &read) != nil || len(read.Data) != count {
		return nil, false
	}
	vectors := make([][]float32, count)
	for i, d := range read.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= count || vectors[i] != nil || len(d.Embedding) == 0 || len(d.Embedding) > maxLong ||
			len(d.Embedding) != len(read.Data[0].Embedding) {
			return nil, false
		}
		vectors[i] = d.Embedding
	}
	return vectors, true
}
