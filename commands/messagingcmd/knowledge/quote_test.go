package knowledge_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd/knowledge"
)

// quote returns the reply of a bot without a model.
func quote(t *testing.T, s *knowledge.Store, bot int64, titles map[int64]string, question string) string {
	t.Helper()
	passages, err := s.Search(t.Context(), bot, question, 6)
	require.NoError(t, err)
	var texts, of []string
	for _, p := range passages {
		texts, of = append(texts, p.Text), append(of, titles[p.Source])
	}
	q, err := s.Quote(t.Context(), bot, question, texts, of, knowledge.Bounds{Coverage: 0.5, Characters: 1000})
	require.NoError(t, err)
	return q.Text
}

// In quotes.tsv, questions and their quotes follow each text; - means no quote. A line's end is \n.
func TestTheItemIsQuotedThatTheQuestionNames(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	table, err := os.ReadFile("testdata/quotes.tsv")
	require.NoError(t, err)
	bot, asked := int64(0), 0
	for line := range strings.Lines(string(table)) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n")
		if !strings.HasPrefix(line, "\t") {
			bot++
			put(t, s, bot, bot, "list.txt", knowledge.Chunks(line)...)
			continue
		}
		question, want, _ := strings.Cut(line[1:], "\t")
		asked++
		if want == "-" {
			want = ""
		}
		require.Equal(t, want, quote(t, s, bot, map[int64]string{bot: "list.txt"}, question), question)
	}
	require.Equal(t, 117, asked)
}

func TestAQuoteSurroundsWhatMatched(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	before, after := strings.Repeat("We polish pieces with care. ", 60), strings.Repeat("Everything is weighed. ", 60)
	put(t, s, 1, 1, "", knowledge.Chunks("Services\n\n"+before+"A kada costs Rs 300 to repair. "+after)...)
	got := quote(t, s, 1, nil, "How much does it cost to repair a kada?")
	require.Contains(t, got, "A kada costs Rs 300 to repair.")
	require.LessOrEqual(t, len([]rune(got)), 1000)
	require.True(t, strings.HasSuffix(got, "…"), got)

	var rows strings.Builder
	rows.WriteString("Making charges\n\n")
	for i := range 400 {
		fmt.Fprintf(&rows, "Design K%d: Rs %d\n", 1000+i, 3*i)
	}
	put(t, s, 2, 2, "", knowledge.Chunks(rows.String())...)
	require.Equal(t, "Making charges\n\nDesign K1390: Rs 1170", quote(t, s, 2, nil, "making charge of design K1390"),
		"the heading is far away")
	require.LessOrEqual(t, len([]rune(quote(t, s, 2, nil, "making charges"))), 1000)
	require.Empty(t, quote(t, s, 2, nil, "making charge of design K9999"))
}

func TestQuestionsOfASetAreAnsweredByTheirDocument(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	set := jeweller(t, s)
	titles := map[int64]string{}
	for i, d := range set {
		titles[int64(i+1)] = d.Title
	}
	for name, others := range map[string]bool{"in the document's words": false, "in other words": true} {
		total, right, wrong := 0, 0, 0
		for _, d := range set {
			questions := d.Questions
			if others {
				questions = d.Others
			}
			for _, question := range questions {
				total++
				lines := strings.Split(strings.TrimSpace(d.Text), "\n")
				switch got := quote(t, s, 1, titles, question); {
				case got == "":
					t.Logf("handed over: %s: %s", d.Title, question)
				case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(got, line) }):
					right++
				default:
					wrong++
					t.Logf("wrong: %s: %s: %s", d.Title, question, got)
				}
			}
		}
		t.Logf("%s: %d questions, %d right, %d wrong", name, total, right, wrong)
		require.LessOrEqual(t, wrong, total/40)
		require.GreaterOrEqual(t, right, total*map[bool]int{false: 80, true: 33}[others]/100)
	}
}
