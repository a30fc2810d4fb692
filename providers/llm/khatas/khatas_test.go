package khatas_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/unit"
	"bahi/internal/test/llmtest"
	"bahi/providers/llm"
	"bahi/providers/llm/khatas"
)

func page(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 8, 8))))
	return file.Bytes()
}

// see makes a model with this answer read a page.
func see(t *testing.T, said ...llmtest.Reply) ([]khatapage.Entry, *llmtest.Server, error) {
	t.Helper()
	s := llmtest.New(t, said...)
	client, err := llm.New(llm.Config{BaseURL: s.URL, VisionModel: "v"})
	require.NoError(t, err)
	entries, err := khatas.Sight{Model: client}.See(t.Context(), page(t))
	return entries, s, err
}

// entry is the JSON of an entry with these fields and a side; the others are null.
func entry(side, fields string) string {
	given := fmt.Sprintf(`"side":%q,%s`, side, fields)
	for _, name := range []string{"date", "party_name", "item_name", "weight", "touch", "fine_weight", "amount"} {
		if !strings.Contains(given, `"`+name+`"`) {
			given += fmt.Sprintf(`,"%s":null`, name)
		}
	}
	return "{" + given + "}"
}

func says(entries ...string) llmtest.Reply {
	return llmtest.Says(`{"entries":[` + strings.Join(entries, ",") + `]}`)
}

func TestAPageIsReadByTheVisionModel(t *testing.T) {
	t.Parallel()
	date, err := unit.ParseDate("2025-03-01")
	require.NoError(t, err)
	entries, s, err := see(t, says(
		entry("out", `"date":"2025-03-01","party_name":" Imran ","item_name":"चांदी","weight":500,"touch":99.5,"fine_weight":497.5`),
		entry("in", `"amount":1500.5`),
	))
	require.NoError(t, err)
	require.Equal(t, []khatapage.Entry{
		{Side: "out", Date: &date, Party: new("Imran"), Item: new("चांदी"), Weight: new(unit.Grams(500_000)), Touch: new(unit.Percent(99_500)),
			Fine: new(unit.Grams(497_500))},
		{Side: "in", Amount: new(unit.Money(150_050))},
	}, entries)
	asked := s.Asked()[0]
	require.Equal(t, "v", asked.Model)
	require.Contains(t, string(asked.Messages[1].Content), `"url":"data:image/jpeg;base64,`)
}

// Instructions on the page, and inventions of the model, stay within the limits of the books.
func TestWhatCannotBeInTheBooksIsUnknown(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]khatapage.Entry{
		`"amount":5,"weight":-1`:                                               {Amount: new(unit.Money(500))},
		`"amount":5,"weight":0,"touch":-99.5`:                                  {Amount: new(unit.Money(500))},
		`"amount":5,"weight":1e300,"fine_weight":99999999999999999`:            {Amount: new(unit.Money(500))},
		`"amount":5,"date":"1/3","party_name":"\u0000","item_name":"a\u202eb"`: {Amount: new(unit.Money(500)), Item: new("a b")},
		`"amount":5,"date":"2025-02-30","item_name":"` + strings.Repeat("अ", 300) + `"`: {Amount: new(unit.Money(500)),
			Item: new(strings.Repeat("अ", 200))},
	} {
		entries, _, err := see(t, says(entry("in", fields)))
		require.NoError(t, err, fields)
		want.Side = "in"
		require.Equal(t, []khatapage.Entry{want}, entries, fields)
	}
	entries, _, err := see(t, says(entry("left", `"amount":5`), entry(" OUT ", `"item_name":"without numbers"`),
		entry("Jama", `"amount":1.239`)))
	require.NoError(t, err)
	require.Equal(t, []khatapage.Entry{{Amount: new(unit.Money(500))}, {Side: "out", Item: new("without numbers")}, {Side: "in"}}, entries)
	many := make([]string, khatapage.MaxEntries+2)
	for i := range many {
		many[i] = entry("in", `"amount":5`)
	}
	entries, _, err = see(t, says(many...))
	require.NoError(t, err)
	require.Len(t, entries, khatapage.MaxEntries+1, "so that the response reports that there are more")
}

func TestAModelThatMisbehavesIsAnError(t *testing.T) {
	t.Parallel()
	entries, s, err := see(t, llmtest.Says(`{"entries": "none"}`), says(entry("in", `"amount":5`)))
	require.NoError(t, err, "it is asked once more")
	require.Len(t, entries, 1)
	require.Len(t, s.Asked(), 2)
	for name, reply := range map[string]llmtest.Reply{"refusal": llmtest.Refuses(), "cut": llmtest.Cuts(`{"entries":[{"side":"in"`),
		"words": llmtest.Says("The page is empty.")} {
		_, _, err := see(t, reply, reply, reply, reply)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "The page", name)
	}
	s = llmtest.New(t)
	client, err := llm.New(llm.Config{BaseURL: s.URL, VisionModel: "v"})
	require.NoError(t, err)
	_, err = khatas.Sight{Model: client}.See(t.Context(), []byte("%PDF-1.7"))
	require.ErrorIs(t, err, llm.ErrNoPicture)
	require.Empty(t, s.Asked())
}
