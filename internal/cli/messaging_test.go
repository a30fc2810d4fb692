package cli_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/readmodels/messagingview"
)

func TestACampaignIsWatched(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write"}`).Key)
	c.POST("/api/channels", `{"name":"Sales","type":"chat"}`).Status(201)
	templates := apitest.Read[[]messagingview.Template](c.GET("/api/chat/templates").Status(200))
	for i := range 5 {
		k := apitest.Read[messagingview.Contact](c.POST("/api/contacts", fmt.Sprintf(`{"name":"Asha","phone":"981230000%d"}`, i+1)).Status(201))
		c.PATCH(fmt.Sprintf("/api/contacts/%d", k.ID), `{"optIn":true}`).Status(200)
	}
	var k messagingview.Campaign
	c.POST("/api/campaigns", fmt.Sprintf(`{"name":"Diwali","type":"broadcast","templateId":%d,"audience":"all"}`,
		templates[0].ID)).Status(201).JSON(&k)
	watch := func() string {
		out := o.Done(t, "campaigns", "watch", fmt.Sprint(k.ID), "--every", "10ms", "--workspace", o.Home)
		return out
	}
	require.Equal(t, "Diwali is draft: 0 sent, 0 delivered, 0 read, 0 failed, 0 skipped\n", watch())
	c.POST("/api/campaigns/send", fmt.Sprintf(`{"campaignId":%d}`, k.ID)).Status(202)
	require.Regexp(t, `^Diwali is completed: 5 sent, \d delivered, \d read, 0 failed, 0 skipped\n$`, watch())
	o.Denied(t, "Campaign not found", "campaigns", "watch", "999")
}
