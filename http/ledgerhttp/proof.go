package ledgerhttp

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"bahi/domain/event"
	"bahi/http/api"
)

// Proofs proves that events are in the log.
type Proofs interface {
	// Stream returns the positions of a stream's events.
	Stream(ctx context.Context, stream string) ([]event.Position, error)
	// File returns a proof of the events at these positions, under the newest checkpoint if size is nil.
	File(ctx context.Context, size *uint64, positions ...event.Position) ([]byte, error)
}

const textType = "text/plain"

// proof registers the proofs of a row, for those who may read it.
func (o operations[In, Out]) proof() {
	op := o.op(api.Op{
		ID: "prove-" + o.l.Name + "-row", Method: "GET", Path: o.Ledger + "/row/{row_id}/proof",
		Summary: "Prove the history of a row. The file has a proof for each event of the row. " +
			"It is verified with the public key alone.",
		StrictQuery: true,
	})
	op.Tags = []string{"Ledger", "Audit"}
	api.Download(o.API, op, map[string]any{textType: nil}, func(ctx context.Context, in *ByRow) (c api.Content, err error) {
		versions, err := o.Views.History(ctx, workspace(ctx), o.l, in.Account, in.Row)
		if err != nil {
			return c, err
		}
		positions, err := o.Proofs.Stream(ctx, o.l.Rows.Stream(strconv.FormatInt(in.Row, 10)))
		if err != nil {
			return c, err
		}
		for _, v := range versions {
			positions = append(positions, v.Position)
		}
		slices.Sort(positions)
		file, err := o.Proofs.File(ctx, nil, slices.Compact(positions)...)
		return api.Content{
			Type: textType + "; charset=utf-8", Name: fmt.Sprintf("%s-row-%d.tlog-proof", o.l.Name, in.Row),
			Write: func(_ context.Context, w io.Writer) error {
				_, err := w.Write(file)
				return err //nolint:wrapcheck // it is the client's
			},
		}, err
	})
}
