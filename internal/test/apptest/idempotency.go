package apptest

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// Decided returns the events after a position, without follow-ups of earlier ones and without reservations of numbers, which come at any
// time.
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
