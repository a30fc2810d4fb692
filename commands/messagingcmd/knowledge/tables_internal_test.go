package knowledge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// statement is the output of pdftotext -layout for a statement of Bahi. Headings touch each other, and so do a date and a number.
const statement = ` Date             No. Details                                           IN (jama) OUT (naame)       Balance
                                                                           Cash ₹       Cash ₹       Cash ₹

                         Opening balance                                                         1,25,000.50
 01 Apr 2025      101    Rent for the workshop, paid by cheque 4711                   1,000.00    1,24,000.50
 16 May 2025 102         Received from Ramesh Soni against bill 89       1,137.25                 1,25,137.75
 01 Jul 2025      103    Received from Ramesh Soni against bill 90       1,274.50                 1,26,412.25
                         Total                                          7,607.75      4,235.25
                         Closing balance                                                         1,28,373.00
`

func TestRowsKeepTheNamesOfTheirColumns(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"Prices\n\n  Item      Making charge    Delivery\n  Payal     " +
			"Rs 120           3 days\n\n  Kada                       5 days\n": "Prices\n\nItem: Payal; Making charge: Rs 120; " +
			"Delivery: 3 days\nItem: Kada; Delivery: 5 days\n",
		"Date          Description        In          Out     Balance\n01-10-2026    Rent of the                 12,000      38,000\n          " +
			"    workshop\n": "Date: 01-10-2026; Description: Rent of the workshop; Out: 12,000; Balance: 38,000\n",
		"Monday      11 to 8\nSunday      closed\n":      "Monday: 11 to 8\nSunday: closed\n",
		"वस्तु      मजूरी\nपायल      120\nकड़ा      300": "वस्तु: पायल; मजूरी: 120\nवस्तु: कड़ा; मजूरी: 300",
		statement: "Details: Opening balance; Balance Cash ₹: 1,25,000.50\n" +
			"Date: 01 Apr 2025; No.: 101; Details: Rent for the workshop, paid by cheque 4711; OUT (naame) Cash ₹: 1,000.00; Balance Cash ₹: 1," +
			"24,000.50\n" +
			"Date: 16 May 2025; No.: 102; Details: Received from Ramesh Soni against bill 89; IN (jama) Cash ₹: 1,137.25; Balance Cash ₹: 1,25," +
			"137.75\n" +
			"Date: 01 Jul 2025; No.: 103; Details: Received from Ramesh Soni against bill 90; IN (jama) Cash ₹: 1,274.50; Balance Cash ₹: 1,26," +
			"412.25\n" +
			"Details: Total; IN (jama) Cash ₹: 7,607.75; OUT (naame) Cash ₹: 4,235.25\n" +
			"Details: Closing balance; Balance Cash ₹: 1,28,373.00\n",
		"No table.\nWords only.": "No table.\nWords only.",
	} {
		require.Equal(t, want, rows(page))
	}
	require.Equal(t, "Item: Payal; Charge: 120\nItem: Kada; Charge: 300", comma("Item,Charge\nPayal,120\nKada,300\n", true))
	require.Equal(t, "વસ્તુ: કડું; ભાવ: ૩૦૦", comma("વસ્તુ;ભાવ\nકડું;૩૦૦\n", false))
	require.Equal(t, "Item: Kada; Charge: 300", comma("Item\tCharge\nKada\t300", false))
	require.Equal(t, "We sell rings, chains.\nWe ship, too.", comma("We sell rings, chains.\nWe ship, too.", false))
	require.Equal(t, "Item: Kada; Charge: 300", piped("| Item | Charge |\n|---|:--:|\n| Kada | 300 |"))
	require.Equal(t, "# Charges\n\nItem: Kada; Charge: 300\n\nGold\nItem: Kada; Charge: 900",
		comma("Charges,\nItem,Charge\nKada,300\nGold,\nKada,900\n", true))
	for page, want := range map[string]string{
		"<h2>Charges</h2><table><tr><td>Item<td>Charge</tr><tr><td>Payal<td>Rs 120<tr><td>Kada<td><b>Rs</b> 300</table>": "## Charges\n\n" +
			"Item: Payal; Charge: Rs 120\nItem: Kada; Charge: Rs 300",
		"<table><tr><th>Monday<td>11 to 8<tr><th>Sunday<td>closed</table>": "Monday: 11 to 8\nSunday: closed",
		"<table><tr><th>Metal<th>Item<th>Charge<tr><td rowspan=2>Gold<td>Kada<td>900<tr><td>Payal<td>700</table>": "Metal: Gold; Item: Kada; " +
			"Charge: 900\nMetal: Gold; Item: Payal; Charge: 700",
		"<table><tr><th rowspan=2>Item<th colspan=2>Making<tr><th>Gold<th>Silver<tr><td>Kada<td>900<td>300</table>": "Item: Kada; " +
			"Making Gold: 900; Making Silver: 300",
		"<table><tr><th>Item<th>Charge<tr><td colspan=2>Gold<tr><td>Kada<td>900<tr><td colspan=2>Silver<tr><td>Kada<td>300</table>": "Gold\n" +
			"Item: Kada; Charge: 900\n\nSilver\nItem: Kada; Charge: 300",
		"<table><tr><th>Item<th>Charge<tr><td>Kada<td>300<tfoot><tr><th>Total<th>300</table>": "Item: Kada; Charge: 300\n" +
			"Item: Total; Charge: 300",
		"<table><tr><th>Item<th>Charge<tr hidden><td>Kada<td>200<tr><td>Kada<td>300</table><p style='display: none'>Kada 190</p>": "Item: " +
			"Kada; Charge: 300",
		"<pre>Item   Charge\nKada   300\nNath   95</pre>": "Item: Kada; Charge: 300\nItem: Nath; Charge: 95",
	} {
		_, text := Page(page)
		require.Equal(t, want, strings.TrimSpace(text), page)
	}
}
