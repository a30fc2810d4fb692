package console

import (
	"context"
	"slices"
	"strconv"

	"bahi/readmodels"
	views "bahi/readmodels/ops"
)

// jobStates are River's states, in the order in which a job goes through them.
var jobStates = []string{"available", "pending", "scheduled", "running", "retryable", "completed", "cancelled", "discarded"}

const jobsOfPage = 50

// chosenJobs is the filter of the list of jobs.
type chosenJobs struct {
	State, Kind string
	States      []string
}

func (v *visit) jobs() (page, error) {
	query := v.r.URL.Query()
	f := chosenJobs{State: query.Get("state"), Kind: query.Get("kind"), States: jobStates}
	if !slices.Contains(jobStates, f.State) {
		f.State = ""
	}
	return listed(v, page{template: "jobs", title: "Jobs"}, jobsOfPage, f, func(ctx context.Context, of readmodels.Page) ([]views.Job, int64, error) {
		return v.Jobs.Jobs(ctx, views.Selection{State: f.State, Kind: f.Kind, Page: of.Number, PageSize: of.Size})
	})
}

func (v *visit) retryJob() (string, error) { return v.changeJob("job-retry", v.Queue.Retry) }

func (v *visit) cancelJob() (string, error) { return v.changeJob("job-cancel", v.Queue.Cancel) }

func (v *visit) changeJob(word string, do func(context.Context, int64) error) (string, error) {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return "", views.ErrNoJob
	}
	return Path + "/jobs?done=" + word, do(v.r.Context(), id)
}

// list is a page of records, for the template list.
type list[T any] struct {
	Items []T
	Total int64
	Pages pages
	Of    any // what they are chosen by
}

// listed reads the page of a list that the address asks for.
func listed[T any](v *visit, p page, size int, of any, read func(context.Context, readmodels.Page) ([]T, int64, error)) (page, error) {
	at := readmodels.Page{Number: number(v.r.FormValue("page")), Size: size}
	items, total, err := read(v.r.Context(), at)
	p.body = list[T]{items, total, v.pagesOf(at.Number, size, total), of}
	return p, err
}

// pages divides a list into pages.
type pages struct {
	Now, Last      int
	Previous, Next int    // 0: none
	Link           string // to a page, without its number
}

func (v *visit) pagesOf(now, size int, total int64) pages {
	query := v.r.URL.Query()
	query.Del("page")
	query.Del("done")
	p := pages{Now: now, Last: max(1, int((total+int64(size)-1)/int64(size))), Link: v.r.URL.Path + "?"}
	if len(query) > 0 {
		p.Link += query.Encode() + "&"
	}
	p.Link += "page="
	if now > 1 {
		p.Previous = min(now-1, p.Last)
	}
	if now < p.Last {
		p.Next = now + 1
	}
	return p
}

// mostPages limits the number so that a page's first row fits into Postgres's type.
const mostPages = 1_000_000_000

// number parses the number of a page; the default is 1.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostPages {
		return 1
	}
	return n
}
