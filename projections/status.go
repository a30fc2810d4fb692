package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Statuses of a generation. A build has the first six, one after the other.
const (
	requested  = "requested"   // nothing is created yet
	filling    = "filling"     // the log is folded into the tables
	indexing   = "indexing"    // the DDL after the fill runs
	catchingUp = "catching up" // catching up with events since the fill
	comparing  = "comparing"   // comparing with the live tables
	differs    = "differs"     // differs from the live tables: an operator must accept the differences or cancel

	statusLive    = "live"    // programs of its version read it
	statusKept    = "kept"    // it was live, and is kept up to date for a rollback until keep_until
	statusScratch = "scratch" // tables of a check, or to be dropped
)

// statusesBefore has the statuses from which a generation may change to each status. A generation may also keep its status.
var statusesBefore = map[string][]string{
	requested:     {filling, indexing, catchingUp, comparing, differs}, // a build starts over
	filling:       {requested},
	indexing:      {filling},
	catchingUp:    {indexing, comparing, differs},
	comparing:     {catchingUp},
	differs:       {comparing},
	statusLive:    {catchingUp, statusKept},
	statusKept:    {statusLive},
	statusScratch: {requested, filling, indexing, catchingUp, comparing, differs, statusLive, statusKept},
}

// become changes the status of the matching generations whose status may change so, and returns these generations. set has further columns
// to set, or is empty.
func become(ctx context.Context, db querier, to, set, where string, args ...any) ([]generation, error) {
	if set != "" {
		set = ", " + set
	}
	from := strings.Join(append(slices.Clone(statusesBefore[to]), to), "', '")
	rows, _ := db.Query(ctx, `update projection.generation set status = '`+to+`'`+set+` where status in ('`+from+`') and `+where+
		` returning `+generationColumns, args...)
	return pgx.CollectRows(rows, pgx.RowToStructByName[generation])
}

// unused removes the owner and the expiry of a generation that becomes [statusScratch].
const unused = `owner = null, keep_until = null`

// Conditions on a projection's name and version.
const (
	isLive  = `status = 'live' and name = $1 and version = $2`
	isBuilt = `status not in ('live', 'kept', 'scratch') and name = $1 and version = $2` // being built
	isKept  = `status = 'kept' and name = $1 and version = $2`
)

// built reports whether the generation's build is complete: it is live, or it was live and is kept.
func (g generation) built() bool { return g.Status == statusLive || g.Status == statusKept }

// incomplete reports whether tables or indexes are missing.
func (g generation) incomplete() bool {
	return g.Status == requested || g.Status == filling || g.Status == indexing
}
