package knowledge_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/commands/messagingcmd/knowledge"
	"bahi/internal/test/labelled"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

// model is a named model. A test sets the vectors of texts.
type model struct {
	name   string
	vector func(text string) []float32
}

func (m model) Embeds() string { return m.name }

func (m model) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	for _, text := range texts {
		vectors = append(vectors, m.vector(text))
	}
	return vectors, nil
}

func store(t testing.TB, m model) *knowledge.Store {
	t.Helper()
	url := pgtest.Template(t, "migrated", migrations.Up)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return &knowledge.Store{Pool: pool, Model: m}
}

// put stores chunks of a bot.
func put(t *testing.T, s *knowledge.Store, bot, source int64, title string, chunks ...string) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), bot, source, title, chunks))
}

// jeweller gives a bot the labelled set.
func jeweller(t *testing.T, s *knowledge.Store) []labelled.Document {
	t.Helper()
	set := labelled.Documents()
	for i, d := range set {
		put(t, s, 1, int64(i+1), d.Title, knowledge.Chunks(d.Text)...)
	}
	return set
}

func TestPassagesAreFoundInFourLanguages(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	set := jeweller(t, s)
	require.GreaterOrEqual(t, len(set), 30)
	for name, of := range map[string]struct {
		questions     func(labelled.Document) []string
		first, quoted float64 // minimum shares of the questions
	}{
		"in the document's words": {func(d labelled.Document) []string { return d.Questions }, 0.8, 0.6},
		"in other words":          {func(d labelled.Document) []string { return d.Others }, 0.6, 0.3},
	} {
		asked, found, first, quoted, total := map[string]int{}, map[string]int{}, 0, 0, 0
		for i, d := range set {
			for _, question := range of.questions(d) {
				passages, err := s.Search(t.Context(), 1, question, 6)
				require.NoError(t, err)
				asked[d.Language]++
				total++
				rank := slices.IndexFunc(passages, func(p knowledge.Passage) bool { return p.Source == int64(i+1) })
				switch {
				case rank < 0:
					t.Logf("%s: %s: not found", d.Title, question)
					continue
				case rank == 0:
					first++
					if passages[0].Coverage >= 0.5 {
						quoted++
					}
				}
				found[d.Language]++
			}
		}
		require.GreaterOrEqual(t, total, 120)
		for language, n := range asked {
			t.Logf("%s, %s: %d of %d questions find their passage", name, language, found[language], n)
			require.GreaterOrEqual(t, float64(found[language])/float64(n), 0.9, language)
		}
		t.Logf("%s: %d of %d have it first, %d would be quoted", name, first, total, quoted)
		require.GreaterOrEqual(t, float64(first)/float64(total), of.first)
		require.GreaterOrEqual(t, float64(quoted)/float64(total), of.quoted)
	}
}

func TestWhatNobodyWroteIsNotQuoted(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	jeweller(t, s)
	for _, question := range []string{"Who won the cricket match yesterday?", "Write a poem about elephants", "send me all contacts",
		"भारत का प्रधानमंत्री कौन है?", "આજે વરસાદ પડશે?", "???", "' & | ! ( ) :* <->", ""} {
		passages, err := s.Search(t.Context(), 1, question, 6)
		require.NoError(t, err, question)
		for _, p := range passages {
			require.Less(t, p.Coverage, 0.5, "%s: %s", question, p.Text)
		}
	}
	none, err := s.Search(t.Context(), 2, "opening hours on Sunday", 6)
	require.NoError(t, err)
	require.Empty(t, none, "another bot's")
}

func TestWordsAreFoundThoughTheyAreMistypedOrInflected(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	put(t, s, 1, 1, "", "We resize rings in four days.")
	put(t, s, 1, 2, "", "पायलें चाँदी की हैं, दाम १२५० रुपये।")
	for question, source := range map[string]int64{"resizing a ring": 1, "resizze": 1, "पायल": 2, "1250": 2} {
		passages, err := s.Search(t.Context(), 1, question, 6)
		require.NoError(t, err)
		require.NotEmpty(t, passages, question)
		require.Equal(t, source, passages[0].Source, question)
	}
}

func TestASearchReadsTheChunksOfItsBotOnly(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	today := slices.Repeat([]string{"The gold rate of today"}, 60) // more than a search compares
	for source := range int64(5) {
		put(t, s, 1+source%2, 1+source, "", today...)
	}
	put(t, s, 2, 6, "", "We buy old gold at the rate of the day")
	for question, first := range map[string]int64{"Do you buy at the gold rate?": 6, "todays rate of gold": 2} {
		passages, err := s.Search(t.Context(), 2, question, 6)
		require.NoError(t, err)
		require.Len(t, passages, 6)
		require.Equal(t, first, passages[0].Source, question)
		for _, p := range passages {
			require.Contains(t, []int64{2, 4, 6}, p.Source, "those of bot 2")
		}
	}
	require.NoError(t, s.Index(t.Context()))
	var waiting int64
	require.NoError(t, s.Pool.QueryRow(t.Context(), `select gin_clean_pending_list('knowledge.chunk_of_bot_idx') + `+
		`gin_clean_pending_list('knowledge.term_of_bot_idx')`).Scan(&waiting))
	require.Zero(t, waiting, "each search would read what is not indexed")
}

func TestWhatIsForgottenLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	rows := func() string {
		var text string
		require.NoError(t, s.Pool.QueryRow(t.Context(), `select (select count(*) from knowledge.chunk) || ' ' || coalesce((select `+
			`string_agg(word || '=' || chunks, ' ' order by word) from knowledge.term), '')`).Scan(&text))
		return text
	}
	put(t, s, 1, 1, "", "gold rate", "gold")
	require.Equal(t, "2 =2 gold=2 rate=1", rows())
	put(t, s, 1, 2, "", "gold")
	put(t, s, 1, 1, "", "silver")
	require.Equal(t, "2 =2 gold=1 silver=1", rows(), "a source is replaced")
	require.NoError(t, s.Forget(t.Context(), 1, 2))
	require.Equal(t, "1 =1 silver=1", rows())
	require.NoError(t, s.Forget(t.Context(), 1, 0))
	require.Equal(t, "0 ", rows())
}

func TestChunksOfOlderProgramsAreConverted(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.DB(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	for _, sql := range []string{
		"0008_knowledge.sql",
		`insert into knowledge.term (bot_id, word, chunks, seeks) values (1, '', 2, '{}'), (1, 'gold', 1, '{1}'), (1, 'silver', 1, '{1}'),
			(1, 'rings', 2, '{1}'), (1, 'ring', 2, '{}')`,
		`insert into knowledge.chunk (source_id, nth, bot_id, text, keys, marks)
			select id, 0, 1, text, array_agg(key order by key), string_agg(substring(int8send(key) for 4) || times, '' order by key)
			from (values (1, 'gold rings, gold', 'gold', '\x02'::bytea), (1, 'gold rings, gold', 'rings', '\x01'),
				(1, 'gold rings, gold', 'ring', '\x01'), (2, 'silver rings', 'silver', '\x01'), (2, 'silver rings', 'rings', '\x01'),
				(2, 'silver rings', 'ring', '\x01')) c (id, text, word, times)
			cross join lateral knowledge.key(1, word) key group by id, text`,
		`create table public.bahi_schema ()`,
		"0011_knowledge_words.sql",
		`alter table knowledge.chunk rename column nth to ordinal`, // of 0013_names.sql
	} {
		if strings.HasSuffix(sql, ".sql") {
			text, err := os.ReadFile("../../../migrations/" + sql)
			require.NoError(t, err)
			sql = string(text)
		}
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	s := &knowledge.Store{Pool: pool, Model: model{}}
	found := func(question string) (sources []int64) {
		passages, err := s.Search(t.Context(), 1, question, 6)
		require.NoError(t, err)
		for _, p := range passages {
			sources = append(sources, p.Source)
		}
		return sources
	}
	require.Equal(t, []int64{1}, found("golld"))
	require.Equal(t, []int64{2, 1}, found("a silver ring"))
	put(t, s, 1, 2, "", "silver chains")
	require.Equal(t, []int64{1}, found("ring"))
	require.NoError(t, s.Forget(t.Context(), 1, 1))
	var text string
	require.NoError(t, pool.QueryRow(t.Context(),
		`select string_agg(word || '=' || chunks, ' ' order by word) from knowledge.term`).Scan(&text))
	require.Equal(t, "=1 chain=1 chains=1 silver=1", text)
}

func TestASourceThatEndsInAnErrorChangesNothing(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	put(t, s, 1, 1, "", "gold")
	for want, chunks := range map[string][]string{
		"The source has no text":   nil,
		"write chunks of source 1": append(slices.Repeat([]string{"silver"}, 40), "\x00"), // more than are written at once
	} {
		require.ErrorContains(t, s.Put(t.Context(), 1, 1, "", chunks), want)
		passages, err := s.Search(t.Context(), 1, "gold silver", 6)
		require.NoError(t, err)
		require.Len(t, passages, 1)
		require.Equal(t, "gold", passages[0].Text)
	}
}

func TestAStemThatIsWrittenLaterIsStemmedToo(t *testing.T) {
	t.Parallel()
	s := store(t, model{})
	// three words with one stem, and the stem itself last
	put(t, s, 1, 1, "", append(slices.Repeat([]string{"relational"}, 40), "relate", "relat")...)
	var text string
	require.NoError(t, s.Pool.QueryRow(t.Context(),
		`select string_agg(word || '=' || chunks, ' ' order by word) from knowledge.term`).Scan(&text))
	require.Equal(t, "=42 relat=42 relate=1 relational=40", text)
}

func TestVectorsFindWhatSharesNoWord(t *testing.T) {
	t.Parallel()
	near := func(text string) []float32 {
		if strings.Contains(text, "jumbo") || strings.Contains(text, "elephant") {
			return []float32{1, 0.1}
		}
		return []float32{0, 1}
	}
	s := store(t, model{"m1", near})
	require.NoError(t, s.UsePgvector(t.Context()), "whether it is there or not")
	for i, text := range []string{"An elephant of brass is at the door", "We are open", "Rings of gold"} {
		put(t, s, 1, int64(i+1), "", text)
	}
	passages, err := s.Search(t.Context(), 1, "Where is jumbo?", 2)
	require.NoError(t, err)
	require.Equal(t, int64(1), passages[0].Source)
	require.Zero(t, passages[0].Coverage, "it shares no word")

	s.Model = model{"m2", near}
	outdated, err := s.Outdated(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, outdated, 3, "vectors of another model do not compare")
}

func TestChunksEndAtParagraphs(t *testing.T) {
	t.Parallel()
	require.Empty(t, knowledge.Chunks(" \n\n\f\n"))
	require.Equal(t, []string{"one\n\ntwo"}, knowledge.Chunks("one\r\n\r\n\r\ntwo\n"))
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "Paragraph %d begins. %s ends.\n\n", i, strings.Repeat("सोना और चाँदी ", 12))
	}
	all := knowledge.Chunks(text.String())
	whole := strings.Join(all, "\n")
	for i := range 100 {
		require.Contains(t, whole, fmt.Sprintf("Paragraph %d begins.", i))
	}
	for i, chunk := range all {
		length := len([]rune(chunk))
		require.LessOrEqual(t, length, 3000)
		if i < len(all)-1 {
			require.GreaterOrEqual(t, length, 2000)
			require.True(t, strings.HasSuffix(chunk, "ends."), "a paragraph that fits is not cut")
		}
	}
	for _, long := range []string{strings.Repeat("x", 10000), strings.Repeat("અ ", 9000)} {
		for _, chunk := range knowledge.Chunks(long) {
			require.LessOrEqual(t, len([]rune(chunk)), 3000)
		}
	}
}

func TestAPageIsItsMainText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("We are open from 11 to 4. ", 10)
	title, text := knowledge.Page(`<html><head><title> Our  FAQ </title><style>p{}</style></head><body><nav>Home</nav><header>Shop</header>
		<main><h1>Hours</h1><p>` + long + `<b>bold</b> tail</p><ul><li>one</li><li>two</li></ul><table><tr><td>a</td><td>b</td></tr></table>
		<script>alert(1)</script><form>Name <input></form></main><footer>Imprint</footer></body></html>`)
	require.Equal(t, "Our FAQ", title)
	require.Equal(t, "# Hours\n\n"+strings.TrimSpace(long)+" bold tail\n\none\n\ntwo\n\na: b", text)
	_, text = knowledge.Page("<p>a</p><nav>b</nav>c" + strings.Repeat("<div>", 300) + "deep")
	require.Equal(t, "a\n\nc\n\ndeep", text)
	_, text = knowledge.Page(strings.Repeat("<div>", 100_000) + "deep")
	require.Empty(t, text, "nobody reads that")
}
