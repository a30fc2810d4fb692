package messagingproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/internal/test/projectiontest"
	"bahi/projections/messagingproj"
)

func TestTemplatesAreShownUntilTheirChannelIsDeleted(t *testing.T) {
	t.Parallel()
	meta := event.Meta{Workspace: uuid.MustParse("11111111-1111-4111-8111-111111111111")}
	listed := func(id string, of int64, body string) projectiontest.Event {
		d := network.Template{ProviderID: "T" + id, Name: "n", Language: "en", Category: "UTILITY", Status: "APPROVED",
			Format: network.Positional}
		d.Read(body)
		return projectiontest.Happened(template.Kind, id, template.Listed{Template: d, Channel: of}, meta)
	}
	tables := projectiontest.Run(t, messagingproj.Templates,
		listed("1", 3, "Hello"), listed("2", 3, "To {{2}} from {{1}}"), listed("3", 4, "Bye"), listed("1", 3, "Hello {{1}}"),
		projectiontest.Happened(template.Kind, "2", template.StatusMoved{Status: "PAUSED"}, meta),
		projectiontest.Happened(channel.Kind, "4", channel.Deleted{}, meta),
	)
	require.Equal(t, []string{`(1,3,T1,APPROVED,{1},"Hello {{1}}")`, `(2,3,T2,PAUSED,"{1,2}","To {{2}} from {{1}}")`},
		tables.Rows(`select id, channel_id, provider_id, status, parameters, body from template order by id`))
}
