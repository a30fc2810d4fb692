package ledgerhttp

import (
	"context"

	"bahi/commands"
	"bahi/domain/ledger/bookslock"
	"bahi/http/api"
	"bahi/readmodels/ledgerview"
)

// booksLock registers the lock of the books.
func (r *Routes) booksLock() {
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "get-books-lock", Method: "GET", Path: "/books/lock", Summary: "Read the lock of the books", Reads: []string{"books"},
	}), func(ctx context.Context, _ *struct{}) (*api.Tagged[ledgerview.Lock], error) {
		lock, revision, err := r.Views.Lock(ctx, api.At(ctx), workspace(ctx))
		return api.WithETag(lock, revision, err)
	})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "set-books-lock", Method: "PUT", Path: "/books/lock",
		Summary: "Lock the books through a day. null unlocks them. An earlier day requires Bahi-Reason.",
	}), func(ctx context.Context, in *struct{ Body bookslock.Set }) (*api.Tagged[ledgerview.Lock], error) {
		out, err := r.Books.SetLock(ctx, api.Request(ctx), in.Body)
		return api.WriteResult(ctx, out, err, func(out commands.Outcome[bookslock.State]) ledgerview.Lock {
			return ledgerview.Lock{LockedThrough: out.State.Through}
		})
	})
}
