package ledgerproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/khata"
	"bahi/internal/test/projectiontest"
	"bahi/projections/ledgerproj"
)

func TestUploadsAreShownWithHowFarTheyAreRead(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111"), Actor: "user:7"}
	happened := func(id string, e event.Event[khata.State]) projectiontest.Event {
		return projectiontest.Happened(khata.Kind, id, e, meta)
	}
	begun := khata.Uploaded{Pipeline: "v2", Blob: "khata/a", Type: "image/png", Size: 9, Later: true}
	tables := projectiontest.Run(t, ledgerproj.Khatas,
		happened("3", begun), happened("3", khata.PageRead{Page: 1, Of: 2}),
		happened("4", begun), happened("4", khata.Failed{Why: "broken"}),
		happened("5", begun), happened("5", khata.Read{Engine: "text", Pages: 2, Entries: 7}), happened("5", khata.Removed{}),
		happened("5", khata.Submitted{First: 10, Rows: 2}), happened("9", khata.Submitted{First: 20}),
	)
	require.Equal(t, []string{`(3,v2,processing,,2,1,0,f,0,0,user:7,1)`, `(4,v2,failed,broken,0,0,0,f,0,0,user:7,1)`,
		`(5,v2,done,,2,2,7,t,10,2,user:7,3)`},
		tables.Rows(`select id, pipeline, status, error, pages, pages_done, entry_count, removed,
			first_row, row_count, actor, revision from khata order by id`))
}
