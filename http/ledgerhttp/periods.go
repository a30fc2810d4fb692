package ledgerhttp

import (
	"cmp"
	"context"
	"net/http"

	"bahi/commands"
	"bahi/domain/ledger/period"
	"bahi/domain/unit"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
)

// periods is the list of seals.
type periods struct {
	Items []ledgerview.Period `json:"items" nullable:"false" doc:"Seals, newest first, also of reopened periods"`
}

// periodBalances is a seal with a page of the closing balances.
type periodBalances struct {
	ledgerview.Period

	Balances []ledgerview.ClosingBalance `json:"balances" nullable:"false" doc:"Closing balances by account, as known at the position of the seal"`
	Total    int64                       `json:"total" doc:"Number of balances on all pages"`
}

// ByPeriod identifies a closed period.
type ByPeriod struct {
	Through api.Optional[unit.Date] `path:"through" doc:"Last day of the period"`
}

// Known selects a past state.
type Known struct {
	KnownAt string `query:"known_at" doc:"State of the log at this RFC 3339 time or position"`
}

// periodAnswer is the output of a closing: 201 if it has closed the period, 200 if the period was closed before.
type periodAnswer struct {
	Status int
	ETag   api.ETag `header:"ETag"`
	Body   period.Closed
}

// closedPeriods registers the closed periods of the books.
func (r *Routes) closedPeriods() {
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "close-period", Method: "POST", Path: "/books/periods", StrictQuery: true,
		Summary: "Close the books through a day and seal all balances. Refused (409) while drafts of orders, khata uploads or parked " +
			"projections of the period are open. Bahi lists them. Locks the books. A closed period is returned with 200.",
	}), func(ctx context.Context, in *struct{ Body period.Close }) (*periodAnswer, error) {
		out, err := r.Periods.Close(ctx, api.Request(ctx), in.Body.Through)
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, out.Position, out.Replayed)
		answer := &periodAnswer{Status: http.StatusOK, ETag: api.Revision(out.Revision)}
		if out.Changed {
			answer.Status = http.StatusCreated
		}
		answer.Body, err = out.State.Of(in.Body.Through)
		return answer, err
	})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "reopen-period", Method: "POST", Path: "/books/periods/{through}/reopen", Status: http.StatusOK, Operator: true, StrictQuery: true,
		Summary: "Reopen the newest closed period. Its seal stays in the trail. Moves the lock back to the end of the period before. " +
			"Requires a reason.",
	}), func(ctx context.Context, in *struct {
		ByPeriod
		Body *Because
	}) (*api.Tagged[ledgerview.Lock], error) {
		in.Body = cmp.Or(in.Body, &Because{})
		req, err := in.Body.given(ctx)
		if err != nil {
			return nil, err
		}
		out, err := r.Periods.Reopen(ctx, req, in.Through.Value)
		return api.WriteResult(ctx, out, err, func(out commands.Outcome[period.State]) ledgerview.Lock {
			return ledgerview.Lock{LockedThrough: out.State.Through()}
		})
	})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "list-periods", Method: "GET", Path: "/books/periods", Summary: "List the seals of closed periods, newest first",
		Reads: []string{"periods"},
	}), func(ctx context.Context, in *struct{ Known }) (*api.Body[periods], error) {
		as, err := r.as(ctx, AsOf{KnownAt: in.KnownAt})
		if err != nil {
			return nil, err
		}
		found, err := r.Views.Periods(ctx, api.At(ctx), workspace(ctx), as)
		return api.Answer(periods{append([]ledgerview.Period{}, found...)}, err)
	})
	api.Handle(r.API, ledgerOp(api.Op{
		ID: "get-period", Method: "GET", Path: "/books/periods/{through}",
		Summary: "Read the newest seal of a period with the closing balances", Reads: []string{"periods", "books"},
	}), func(ctx context.Context, in *struct {
		ByPeriod
		Known
		SomePage
	}) (answer *api.Body[periodBalances], err error) {
		as, err := r.as(ctx, AsOf{KnownAt: in.KnownAt})
		if err != nil {
			return nil, err
		}
		if _, err := in.get(); err != nil {
			return nil, err
		}
		found := periodBalances{}
		if found.Period, err = r.Views.Period(ctx, api.At(ctx), workspace(ctx), in.Through.Value, as); err != nil {
			return nil, err
		}
		err = in.read(ctx, func(page readmodels.Page) (int64, error) {
			balances, total, err := r.Views.ClosingBalances(ctx, api.At(ctx), workspace(ctx), found.Through,
				ledgerview.As{KnownAt: &found.Position}, page)
			found.Balances, found.Total = append([]ledgerview.ClosingBalance{}, balances...), total
			return total, err
		})
		return api.Answer(found, err)
	})
}
