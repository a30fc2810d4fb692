package knowledge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
		"Date      IN        OUT\n          Cash ₹    Cash ₹\n1 Apr     10        20\n2 Apr               30": "Date: 1 Apr; IN Cash ₹: 10; " +
			"OUT Cash ₹: 20\nDate: 2 Apr; OUT Cash ₹: 30",
		"Item      Price\nAnklets\nPlain     400\nRings\nPlain     150":  "\nAnklets\nItem: Plain; Price: 400\n\nRings\nItem: Plain; Price: 150",
		"          Open      Close\nMon       10        8\nSat       11": "Mon: Open: 10; Close: 8\nSat: Open: 11",
		"No table.\nWords only.": "No table.\nWords only.",
		"Item      Making ₹    Polish ₹\nNath      95          99\nKada      300": "Item: Nath; Making ₹: 95; Polish ₹: 99\n" +
			"Item: Kada; Making ₹: 300",
		"Item:     Making ($):   Days:\nNath      95            2\n": "Item: Nath; Making ($): 95; Days: 2\n",
		// first cells of several lines, with the values at their top, middle and bottom
		"Item                 Charge   Days\nSilver payal with    120      3\nghungroo bells\n" +
			"Plain kada           300      5\n": "Item: Silver " +
			"payal with ghungroo bells; Charge: 120; Days: 3\nItem: Plain kada; Charge: 300; Days: 5\n",
		"Item                 Charge   Days\nSilver payal\nwith ghungroo        120      3\nbells\n" +
			"Plain kada           300      5\n": "Item: Silver " +
			"payal with ghungroo bells; Charge: 120; Days: 3\nItem: Plain kada; Charge: 300; Days: 5\n",
		"Item                 Charge   Days\nMeenakari jhumka\n                     450      3\n" +
			"Plain kada           300      5\n": "Item: Meenakari " +
			"jhumka; Charge: 450; Days: 3\nItem: Plain kada; Charge: 300; Days: 5\n",
		"Item                 Charge   Days\nSilver payal\nwith bells\nand hook             120      3\n\n" +
			"Plain kada           300      5\n": "Item: Silver " +
			"payal with bells and hook; Charge: 120; Days: 3\nItem: Plain kada; Charge: 300; Days: 5\n",
		"वस्तु                 मजूरी   दिन\nघुंघरू वाली चाँदी की      120    3\nपायल\n" +
			"सादा कड़ा             300    5": "वस्तु: घुंघरू वाली चाँदी की पायल; " +
			"मजूरी: 120; दिन: 3\nवस्तु: सादा कड़ा; मजूरी: 300; दिन: 5",
		"વસ્તુ              મજૂરી   દિવસ\nમોતી અને નાની ચેન\nવાળી નથ            95    2\n" +
			"સાદું કડું            300   5": "વસ્તુ: મોતી અને નાની ચેન વાળી નથ; " +
			"મજૂરી: 95; દિવસ: 2\nવસ્તુ: સાદું કડું; મજૂરી: 300; દિવસ: 5",
		"Making charges\nitem      charge\nkada      300\nnath      95\nall prices include tax and the cost of the box\n": "Making charges\n" +
			"item: kada; charge: 300\nitem: nath; charge: 95\nall prices include tax and the cost of the box\n",
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
