package messagingproj

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fold that scans a whole table for each event makes a rebuild quadratic: 110,000 messages of 40,000 contacts took over a quarter of an
// hour.
func TestFoldsFindRowsByAnIndexWhileTablesAreFilled(t *testing.T) {
	t.Parallel()
	for ddl, index := range map[string]string{messagesDDL: "on message (contact_id,", campaignsDDL: "on recipient (contact_id,"} {
		filled, _, _ := strings.Cut(ddl, "-- after fill")
		require.Contains(t, filled, index)
	}
}
