package knowledge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowsKeepTheNamesOfTheirColumns(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"Prices\n\n  Item      Making charge    Delivery\n  Payal     Rs 120           3 days\n\n  Kada                       5 days\n":                        "Prices\n\nItem: Payal; Making charge: Rs 120; Delivery: 3 days\nItem: Kada; Delivery: 5 days\n",
		"Date          Description        In          Out     Balance\n01-10-2026    Rent of the                 12,000      38,000\n              workshop\n": "Date: 01-10-2026; Description: Rent of the workshop; Out: 12,000; Balance: 38,000\n",
		"Monday      11 to 8\nSunday      closed\n":      "Monday: 11 to 8\nSunday: closed\n",
		"वस्तु      मजूरी\nपायल      120\nकड़ा      300": "वस्तु: पायल; मजूरी: 120\nवस्तु: कड़ा; मजूरी: 300",
		"No table.\nWords only.": "No table.\nWords only.",
	} {
		require.Equal(t, want, rows(page))
	}
	require.Equal(t, "Item: Payal; Charge: 120\nItem: Kada; Charge: 300", comma("Item,Charge\nPayal,120\nKada,300\n", true))
	require.Equal(t, "વસ્તુ: કડું; ભાવ: ૩૦૦", comma("વસ્તુ;ભાવ\nકડું;૩૦૦\n", false))
	require.Equal(t, "Item: Kada; Charge: 300", comma("Item\tCharge\nKada\t300", false))
	require.Equal(t, "We sell rings, chains.\nWe ship, too.", comma("We sell rings, chains.\nWe ship, too.", false))
	require.Equal(t, "Item: Kada; Charge: 300", piped("| Item | Charge |\n|---|:--:|\n| Kada | 300 |"))
	_, text := Page("<h2>Charges</h2><table><tr><td>Item<td>Charge</tr><tr><td>Payal<td>Rs 120<tr><td>Kada<td><b>Rs</b> 300</table>")
	require.Equal(t, "## Charges\n\nItem: Payal; Charge: Rs 120\nItem: Kada; Charge: Rs 300", text)
	_, text = Page("<table><tr><th>Monday<td>11 to 8<tr><th>Sunday<td>closed</table>")
	require.Equal(t, "Monday: 11 to 8\nSunday: closed", text)
}
