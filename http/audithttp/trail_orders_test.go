package audithttp_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestTrailShowsOrdersAndTakadasAlsoWhereAnotherRecordEndedThem(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	made := func(c *apitest.Client, path, body string, values ...any) (id, item int64) {
		var one struct {
			ID    int64
			Items []struct{ ID int64 }
		}
		require.NoError(t, json.Unmarshal([]byte(c.POST(path, fmt.Sprintf(body, values...)).Status(201).Text), &one))
		for _, i := range one.Items {
			item = i.ID
		}
		return one.ID, item
	}
	meena, _ := made(clerk, "/client", `{"name":"Meena"}`)
	const piece = `"items":[{"item_name":"ring","weight":2}]`
	first, firstItem := made(clerk, "/client-order", `{"client_id":%d,"slip_number":"12","date":"2025-03-01",%s}`, meena, piece)
	second, secondItem := made(clerk, "/client-order", `{"client_id":%d,"date":"2025-03-02",%s}`, meena, piece)
	one, _ := made(clerk, "/takada", `{"client_order_id":%d,"date":"2025-03-05",%s}`, first, piece)
	other, _ := made(clerk, "/takada", `{"client_order_id":%d,"date":"2025-03-06",%s}`, second, piece)
	clerk.With("Bahi-Reason", "typo").PUT(fmt.Sprint("/client-order/", first), `{"slip_number":null,"delivery_date":"2025-03-31"}`).Status(200)
	clerk.PUT(fmt.Sprint("/takada/", one), `{"items":[{"item_name":"ring","weight":1.5,"quantity":3}]}`).Status(200)
	clerk.With("Bahi-Reason", "twice").DELETE(fmt.Sprint("/client-order/", second)).Status(204)
	clerk.PUT(fmt.Sprint("/client/", meena), `{"name":"Meena Shah"}`).Status(200)
	clerk.With("Bahi-Reason", "moved away").DELETE(fmt.Sprint("/client/", meena)).Status(204)
	foreign := o.Clerk(o.Abroad)
	stranger, _ := made(foreign, "/client", `{"name":"Stranger"}`)
	made(foreign, "/client-order", `{"client_id":%d,"date":"2025-03-01",%s}`, stranger, piece)

	auditor := o.Auditor(o.Home)
	trail := apptest.TrailOf(auditor, "")
	require.Equal(t, []string{
		`client opened name:null>"Meena"`,
		fmt.Sprintf(`clientorder added client_id:null>%d date:null>"2025-03-01" items[0].id:null>%d items[0].item_name:null>"ring" `+
			`items[0].making_charge:null>0 items[0].weight:null>2 slip_number:null>"12"`, meena, firstItem),
		fmt.Sprintf(`clientorder added client_id:null>%d date:null>"2025-03-02" items[0].id:null>%d items[0].item_name:null>"ring" `+
			`items[0].making_charge:null>0 items[0].weight:null>2`, meena, secondItem),
		fmt.Sprintf(`takada added client_order_id:null>%d date:null>"2025-03-05" items[0].item_name:null>"ring" items[0].weight:null>2`, first),
		fmt.Sprintf(`takada added client_order_id:null>%d date:null>"2025-03-06" items[0].item_name:null>"ring" items[0].weight:null>2`, second),
		`clientorder edited delivery_date:null>"2025-03-31" slip_number:"12">null`,
		`takada edited items[0].quantity:null>3 items[0].weight:2>1.5`,
		fmt.Sprintf(`clientorder deleted client_id:%d>null date:"2025-03-02">null items[0].id:%d>null items[0].item_name:"ring">null `+
			`items[0].making_charge:0>null items[0].weight:2>null`, meena, secondItem),
		fmt.Sprintf(`takada deleted client_order_id:%d>null date:"2025-03-06">null items[0].item_name:"ring">null items[0].weight:2>null`,
			second),
		`client renamed name:"Meena">"Meena Shah"`,
		`client deleted name:"Meena Shah">null`,
		fmt.Sprintf(`clientorder deleted client_id:%d>null date:"2025-03-01">null delivery_date:"2025-03-31">null items[0].id:%d>null `+
			`items[0].item_name:"ring">null items[0].making_charge:0>null items[0].weight:2>null`, meena, firstItem),
		fmt.Sprintf(`takada deleted client_order_id:%d>null date:"2025-03-05">null items[0].item_name:"ring">null items[0].quantity:3>null `+
			`items[0].weight:1.5>null`, first),
	}, trail.Short())
	require.Equal(t, []string{"", "", "", "", "", "typo", "", "twice", "twice", "", "moved away", "moved away", "moved away"},
		apptest.Each(trail.Changes, func(c apptest.TrailChange) string { return c.Reason }))
	for i, c := range trail.Changes {
		require.Equal(t, meena, c.Account.ID)
		require.Equal(t, map[bool]string{true: "Meena", false: "Meena Shah"}[i < 9], c.Account.Name, "as the client was called then")
	}
	for query, want := range map[string]int{
		"?kind=clientorder": 5,
		"?kind=takada":      5,
		fmt.Sprintf("?kind=clientorder&id=%d", first): 3,
		fmt.Sprintf("?kind=takada&id=%d", other):      2,
		fmt.Sprintf("?kind=takada&id=%d", one):        3,
		fmt.Sprintf("?account=%d", meena):             13,
		fmt.Sprintf("?account=%d&kind=takada", meena): 5,
		"?party=RING": 10,
		"?by=effective&from=2025-03-05&to=2025-03-31":      5,
		"?user=" + trail.Changes[0].Actor + "&kind=takada": 5,
	} {
		require.Len(t, apptest.TrailOf(auditor, query).Changes, want, query)
	}
	require.Contains(t, auditor.GET("/audit/trail?format=csv&kind=clientorder").Status(200).Text, "slip_number,12,")
	text := apptest.Words(t, auditor.GET("/audit/trail?format=pdf").Status(200))
	require.Contains(t, text, fmt.Sprintf("Takada %d of Meena (client %d) edited", one, meena))
	require.Contains(t, text, fmt.Sprintf("Order %d of Meena Shah (client %d) deleted", first, meena))
}
