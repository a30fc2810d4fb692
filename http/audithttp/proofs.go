package audithttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/readmodels/auditview"
)

var errLast = fault.Wrong("Last-Event-ID", "expected a log position")

// These are the content types of responses: JSON, or a file on request.
const (
	jsonType = "application/json"
	textType = "text/plain"
)

func asText(name string, text []byte) api.Content {
	return api.Content{Type: textType + "; charset=utf-8", Name: name, Write: func(_ context.Context, w io.Writer) error {
		_, err := w.Write(text)
		return err
	}}
}

func asJSON(body any, err error) (api.Content, error) {
	return api.Content{Type: jsonType, Write: func(_ context.Context, w io.Writer) error { return json.NewEncoder(w).Encode(body) }}, err
}

// checkpoints registers the operations for checkpoints and public keys.
func (r *Routes) checkpoints() {
	api.Download(r.API, api.Op{
		ID: "get-checkpoint", Method: "GET", Path: "/audit/checkpoint",
		Summary: "Read the newest signed checkpoint of the log. format=tlog-checkpoint returns a file.",
		Tags:    tags, Area: area, Limit: limit, StrictQuery: true,
	}, map[string]any{jsonType: auditview.Checkpoint{}, textType: nil}, func(ctx context.Context, in *struct {
		Format string `query:"format" enum:"json,tlog-checkpoint" default:"json" doc:"Format of the response"`
	}) (api.Content, error) {
		c, err := r.Proofs.Newest(ctx)
		if err == nil && in.Format != "json" {
			return asText(fmt.Sprintf("bahi-%d.checkpoint", c.Size), []byte(c.Note)), nil
		}
		return asJSON(c, err)
	})
	api.Handle(r.API, api.Op{
		ID: "list-checkpoints", Method: "GET", Path: "/audit/checkpoints", Summary: "List all signed checkpoints, oldest first",
		Tags: tags, Area: area, Limit: limit, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		After int64 `query:"after" minimum:"0" doc:"Number of the last one that was seen"`
		Limit int   `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"Checkpoints of a page"`
	}) (*struct {
		Link string `header:"Link" doc:"The next page (RFC 8288); absent on the last"`
		Body []auditview.Checkpoint
	}, error) {
		all, err := r.Proofs.Checkpoints(ctx, in.After, in.Limit+1)
		if err != nil {
			return nil, err
		}
		out := &struct {
			Link string `header:"Link" doc:"The next page (RFC 8288); absent on the last"`
			Body []auditview.Checkpoint
		}{Body: all}
		if len(all) > in.Limit {
			out.Body = all[:in.Limit]
			out.Link = fmt.Sprintf(`</audit/checkpoints?after=%d&limit=%d>; rel="next"`, all[in.Limit-1].Number, in.Limit)
		}
		return out, nil
	})
	api.Download(r.API, api.Op{
		ID: "get-audit-key", Method: "GET", Path: "/audit/key",
		Summary: "Read the public keys of checkpoints, present and former. format=text returns a file for verifiers.",
		Tags:    tags, Area: area, Limit: limit, StrictQuery: true,
	}, map[string]any{jsonType: []auditview.Key{}, textType: nil}, func(ctx context.Context, in *struct {
		Format string `query:"format" enum:"json,text" default:"json" doc:"Format of the response"`
	}) (api.Content, error) {
		keys, err := r.Proofs.Keys(ctx)
		if err == nil && in.Format != "json" {
			var text strings.Builder
			for _, k := range keys {
				text.WriteString(k.Key + "\n")
			}
			return asText("bahi.keys", []byte(text.String())), nil
		}
		return asJSON(keys, err)
	})
}

// raw registers proofs about the whole log, for operators: they reveal how much other workspaces write.
func (r *Routes) raw() {
	api.Download(r.API, api.Op{
		ID: "prove-inclusion", Method: "GET", Path: "/audit/proof/inclusion",
		Summary: "Prove that an event is in the log. An inclusion proof of RFC 6962. " +
			"format=tlog-proof returns a file that is verified with the public key alone.",
		Tags: tags, Operator: true, Limit: limit, StrictQuery: true,
	}, map[string]any{jsonType: auditview.Inclusion{}, textType: nil}, func(ctx context.Context, in *struct {
		Position int64                `query:"position" required:"true" minimum:"1" maximum:"4611686018427387904" doc:"Of the event"`
		Size     api.Optional[uint64] `query:"size" doc:"Size of the tree; absent: the size of the newest checkpoint. For a file, the size of a signed checkpoint"`
		Format   string               `query:"format" enum:"json,tlog-proof" default:"json" doc:"Format of the response"`
	}) (api.Content, error) {
		at := event.Position(in.Position)
		if in.Format == "json" {
			return asJSON(r.Proofs.Inclusion(ctx, at, in.Size.Get()))
		}
		file, err := r.Proofs.File(ctx, in.Size.Get(), at)
		if err != nil {
			return api.Content{}, err
		}
		return asText(fmt.Sprintf("event-%d%s", at, proofExtension), file), nil
	})
	api.Handle(r.API, api.Op{
		ID: "prove-consistency", Method: "GET", Path: "/audit/proof/consistency",
		Summary: "Prove that a larger log extends a smaller one. A consistency proof of RFC 6962.",
		Tags:    tags, Operator: true, Limit: limit, StrictQuery: true,
	}, func(ctx context.Context, in *struct {
		From uint64 `query:"from" required:"true" doc:"Events of the smaller tree"`
		To   uint64 `query:"to"   required:"true" doc:"Events of the larger tree"`
	}) (*api.Body[auditview.Consistency], error) {
		return api.Answer(r.Proofs.Consistency(ctx, in.From, in.To))
	})
}

const proofExtension = ".tlog-proof"
