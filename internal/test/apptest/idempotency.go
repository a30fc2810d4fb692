package apptest

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// Decided returns the events after a position, without those that only carry out an earlier one, and without reservations of numbers:
// these come at any time.
func (o *Server) Decided(after int64) (all []string) {
	for e := range o.Events(after) {
		var meta event.Meta
		require.NoError(o.T, json.Unmarshal(e.Meta, &meta))
		if meta.FollowUpOf == 0 && e.Type != "NumbersReserved" {
			all = append(all, e.Type+" of "+e.Stream)
		}
	}
	return all
}
