package auditview

import (
	"encoding/json"
	"fmt"

	"bahi/domain/event"
	"bahi/domain/ledger/period"
)

var periodKind = period.Kind.Category()

// periodChange returns the closing of a period, or its reopening if the event has a reason.
func periodChange(f TrailFilter, e logged) (c Change, ok bool, err error) {
	var seal struct {
		period.Closed
		Reason *string `json:"reason"`
	}
	if err := json.Unmarshal(e.data, &seal); err != nil {
		return c, false, fmt.Errorf("the period of position %d: %w", e.position, err)
	}
	through, digest := quoted(seal.Through.String()), quoted(seal.Digest)
	c = e.change(e.kind, 0)
	_, c.ID = event.SplitStream(e.stream)
	c.Change, c.Fields = "closed", []Field{{"through", null, through}, {"digest", null, digest}}
	if seal.Reason != nil {
		c.Change, c.Fields = "reopened", []Field{{"through", through, null}, {"digest", digest, null}}
	}
	return c, f.covers(seal.Through) && f.Account == 0 && f.Party == "", nil
}
