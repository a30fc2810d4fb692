package messaginghttp_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// opened creates an account with rows, and returns the path of its ledger.
func opened(c *apitest.Client, ledger, account string, rows ...string) string {
	id := apitest.Read[map[string]any](c.POST("/"+ledger, account).Status(201))["id"]
	for _, row := range rows {
		c.POST(fmt.Sprintf("/%s-ledger/%v", ledger, id), row).Status(201)
	}
	return fmt.Sprintf("/%s-ledger/%v", ledger, id)
}

// Each asked question has the beginnings of the quoted rows, after the account. An empty answer hands over.
func TestABotAnswersFromTheStatementOfEachLedger(t *testing.T) {
	t.Parallel()
	const closing = "Details: Closing balance; Balance Cash ₹: 8,500.00 you owe; Balance Fine g: 109.715 owes you"
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write","ledger":"write"}`).Key)
	for _, l := range []struct {
		ledger, account, head string
		rows                  []string
		pdf                   string
		asked                 map[string][]string
	}{
		{"client", `{"name":"Patel Jewellers"}`, "Patel Jewellers: Client ledger", patel, "/statement.pdf", map[string][]string{
			"what is the balance of Patel Jewellers?":                 {closing},
			"पटेल का बैलेंस कितना है?":                                {closing},
			"પટેલ પાસે કેટલા બાકી છે?":                                {closing},
			"how much does Patel owe us?":                             {closing},
			"what was given on 1 March 2025?":                         {"01 Mar: Payal", "01 Mar: Bichhiya"},
			"What did we give on 01-03-2025?":                         {"01 Mar: Payal", "01 Mar: Bichhiya"},
			"What did we receive on March 11, 2025?":                  {"11 Mar: by cheque; IN (jama) Cash ₹: 10,000.00"},
			"What was received on ૪ માર્ચ?":                           {"04 Mar: old silver"},
			"how much payal did Patel take?":                          {"01 Mar: Payal, slip number 118, weight 100"},
			"પાયલ કેટલી આપી?":                                         {"01 Mar: Payal, slip number 118, weight 100"},
			"How much did they pay by cheque?":                        {"11 Mar: by cheque; IN (jama) Cash ₹: 10,000.00"},
			"balance on 11 March 2025?":                               {"11 Mar: Kada, slip number 214"},
			"total received?":                                         {"Details: Total; IN (jama) Cash ₹: 10,000.00; IN (jama) Fine g: 45.000"},
			"opening balance?":                                        {"Details: Opening balance; Balance Cash ₹: 0.00 settled"},
			"what happened on 2 March 2025?":                          nil,
			"balance of Shah Jewellers?":                              nil,
			"what did we receive on 1 March 2025?":                    nil,
			"what was given before 5 March 2025?":                     nil,
			"what was given from 1 to 5 March 2025?":                  nil,
			"How much chain did Patel take?":                          nil,
			"What is the making charge of bichhiya given on 1 March?": nil,
		}},
		{"client", `{"name":"Patel Jewellers"}`, "Patel Jewellers: Client ledger", patel, "/pdf/out", map[string][]string{
			"what was given on 1 March 2025?": {"01 Mar: Payal", "01 Mar: Bichhiya, slip number " +
				"118, weight 40, touch 80, fine weight 32; OUT (naame) Fine g: 32.000"},
			"total given?":     {"Details: Total; OUT (naame) Cash ₹: 1,500.00; OUT (naame) Fine g: 154.715"},
			"total received?":  nil,
			"the balance?":     nil,
			"opening balance?": nil,
		}},
		{"karigar", `{"name":"Imran"}`, "Imran: Karigar ledger", []string{
			`{"date":"2025-03-01","out_entries":[{"item_name":"fine silver","weight":500,"touch":99.5}]}`,
			`{"date":"2025-03-05","in_entries":[{"item_name":"payal","pure_weight":520,"fine_percent":92,"wastage_percent":2,"other":1500}]}`,
			`{"date":"2025-03-15","in_entries":[{"item_name":"kada","pure_weight":20,"fine_percent":92},{"item_name":"nath","pure_weight":10,` +
				`"fine_percent":80}],"out_entries":[{"item_name":"advance","amount":500}]}`,
		}, "/statement.pdf", map[string][]string{
			"how much fine weight of payal did Imran give?":    {"05 Mar: payal, pure weight 520, fine percent 92, fine weight 478.4"},
			"how much fine weight of payal did Imran receive?": nil, // it is on the IN side
			"इमरान ने कितनी पायल दी?":                          {"05 Mar: payal"},
			"How much kada came on 15 March?":                  {"15 Mar: kada, pure weight 20"},
			"How much advance did Imran get?":                  {"15 Mar: advance; OUT (naame) Cash ₹: 500.00"},
			"How much fine silver did Imran take?":             {"01 Mar: fine silver, weight 500"},
			"balance on 5 March 2025":                          {"05 Mar: payal"},
			"what is the balance of Imran?":                    {"Details: Closing balance; Balance Cash ₹: 1,000.00 you owe"},
		}},
		{"bullion", `{"name":"Mehta Bullion"}`, "Mehta Bullion: Bullion ledger", []string{
			`{"date":"2025-03-01","in_entries":[{"item_name":"bar","weight":1000,"touch":99.5}]}`,
			`{"date":"2025-03-05","out_entries":[{"kind":"cash","amount":20000,"description":"NEFT"}]}`,
		}, "/statement.pdf", map[string][]string{
			"balance of Mehta Bullion?":       {"Details: Closing balance; Balance Cash ₹: 20,000.00 owes you; Balance Fine g: 995.000 you owe"},
			"How much did we pay by NEFT?":    {"05 Mar: NEFT, cash; OUT (naame) Cash ₹: 20,000.00"},
			"how much bar came?":              {"01 Mar: bar, metal, weight 1,000"},
			"how much bar was given?":         nil,
			"how much was paid in cash?":      {"05 Mar: NEFT, cash"},
			"what was paid on 5th March '25?": nil,
		}},
		{"polisher", `{"name":"Salim","type":0}`, "Salim: Polisher ledger", []string{
			`{"date":"2025-03-01","out_entries":[{"item_name":"payal","weight":100,"pieces":12,"description":"urgent"}]}`,
			`{"date":"2025-03-02","in_entries":[{"item_name":"payal","weight":98.5,"loss_weight":1.5,"pieces":12,"rate":5,"amount":60}]}`,
		}, "/statement.pdf", map[string][]string{
			"balance of Salim?":              {"Details: Closing balance; Balance Cash ₹: 60.00 you owe; Balance Weight g: 0.000 settled"},
			"How much payal was given?":      {"01 Mar: urgent, payal, weight 100"},
			"How much payal did Salim give?": {"02 Mar: payal, weight 98.5"},
			"payal?":                         {"01 Mar: urgent, payal, weight 100", "02 Mar: payal, weight 98.5"},
		}},
		{"bank", `{"name":"SBI"}`, "SBI: Bank ledger", []string{
			`{"date":"2025-03-01","in_entries":[{"amount":12500,"description":"Opening deposit"}]}`,
			`{"date":"2025-04-05","out_entries":[{"amount":400,"description":"Rent for the shop"},{"amount":50,"description":"Total"}]}`,
		}, "/statement.pdf", map[string][]string{
			"what is the balance?":      {"Details: Closing balance; Balance Cash ₹: 12,050.00"},
			"what was paid on 5 April?": {"05 Apr: Rent for the shop", "05 Apr: Total; OUT (naame) Cash ₹: 50.00"},
			"total paid?":               {"Details: Total; IN (jama) Cash ₹: 12,500.00; OUT (naame) Cash ₹: 450.00"},
			"5 अप्रैल को क्या दिया?": {"05 Apr: Rent for the shop", "05 Apr: Total"},
		}},
	} {
		b := botOf(t, c, "")
		taughtAs(t, c, b, "application/pdf", c.GET(opened(c, l.ledger, l.account, l.rows...)+l.pdf).Status(200).Text)
		for question, want := range l.asked {
			requireRows(t, c, b.ID, question, l.head, want)
		}
	}
}

var patel = []string{
	`{"date":"2025-03-01","out_entries":[{"item_name":"Payal","slip_number":"118","weight":100,"touch":92,"wastage_percent":3,` +
		`"making_charge":1500},{"item_name":"Bichhiya","slip_number":"118","weight":40,"touch":80}]}`,
	`{"date":"2025-03-04","in_entries":[{"item_name":"old silver","weight":50,"touch":90}]}`,
	`{"date":"2025-03-11","in_entries":[{"description":"by cheque","amount":10000}],` +
		`"out_entries":[{"item_name":"Kada","slip_number":"214","weight":30.125,"touch":92}]}`,
}

// requireRows tests that a bot's answer has the account and the given rows only, which begin with the day.
func requireRows(t *testing.T, c *apitest.Client, bot int64, question, head string, want []string) {
	t.Helper()
	said := apitest.Read[map[string]any](c.POST(botAt(bot, "/try"), fmt.Sprintf(`{"text":%q}`, question)).Status(200))
	require.Equal(t, want == nil, said["handover"], "%s: %s\n%s", head, question, said["answer"])
	if want == nil {
		return
	}
	quoted, _, _ := strings.Cut(said["answer"].(string), "\n\nSource: ")
	above, rows, _ := strings.Cut(quoted, "\n\n")
	require.Equal(t, head, above, question)
	lines := strings.Split(rows, "\n")
	require.Len(t, lines, len(want), "%s: %s\n%s", head, question, said["answer"])
	for i, line := range lines {
		require.Contains(t, dayOfRow.ReplaceAllString(line, "$1: "), want[i], question)
	}
}

var dayOfRow = regexp.MustCompile(`^Date: (\d\d \pL+) 2025; No\.: \d+; Details: `)

// A statement of many pages is in several passages. Each keeps the account, and a day's rows are found on every page.
func TestABotAnswersFromLongStatementsOfTwoAccounts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, `{"messaging":"write","ledger":"write"}`).Key)
	b := botOf(t, c, "")
	for n, name := range []string{"Patel Jewellers", "Shah and Sons"} {
		var rows []string
		for day := 1; day <= 28; day++ {
			rows = append(rows, fmt.Sprintf(`{"date":"2025-02-%02d","out_entries":[{"item_name":"payal","slip_number":"%d","weight":%d,"touch":80},`+
				`{"item_name":"ring","weight":%d,"touch":80},{"item_name":"kada","weight":%d,"touch":80}]}`, day, 1000*n+day, 100+day, 10+day, 50+day))
		}
		taughtAs(t, c, b, "application/pdf", c.GET(opened(c, "client", `{"name":"`+name+`"}`, rows...)+"/statement.pdf").Status(200).Text)
	}
	for day := 1; day <= 28; day++ {
		requireRows(t, c, b.ID, fmt.Sprintf("How much kada was given to Shah on %d February 2025?", day), "Shah and Sons: Client ledger",
			[]string{fmt.Sprintf("%02d Feb: kada, weight %d, touch 80", day, 50+day)})
	}
	requireRows(t, c, b.ID, "What is the balance of Shah and Sons?", "Shah and Sons: Client ledger", []string{"Details: Closing balance; "})
	requireRows(t, c, b.ID, "What is the balance of Mehta?", "", nil)
}
