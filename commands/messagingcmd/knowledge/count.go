package knowledge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"bahi/domain/wording"
)

// counting counts the words of a source's chunks, both as written and as English stems.
type counting struct {
	bot   int64
	ids   map[string]int32 // of words
	words []counted
	fresh []int32 // written words without known stems
	there []int32 // words of the current chunk; reused
}

// counted is a word of a source.
type counted struct {
	text    string
	key     int64
	stem    int32 // id of its stem; itself: none
	written bool  // it occurs as a word, not only as a stem
	chunks  int64 // number of chunks with the word
	times   int32 // occurrences in the current chunk
}

// occurrence is the number of times that a chunk has a word.
type occurrence struct{ word, times int32 }

// key returns the index key for a word of a bot, or for a trigram. It equals the database's knowledge.key.
func key(bot int64, word string) int64 {
	text := append(append(strconv.AppendInt(make([]byte, 0, 2*maxWord), bot, 10), ' '), word...)
	sum := sha256.Sum256(text)
	return int64(binary.BigEndian.Uint64(sum[:])) // its bits
}

// cut returns the written words of a text.
func (c *counting) cut(text string) []occurrence {
	there := c.there[:0]
	for word := range terms(text) {
		id := c.id(word)
		if c.words[id].times++; c.words[id].times == 1 {
			there = append(there, id)
		}
	}
	c.there = there
	all := make([]occurrence, len(there))
	for i, id := range there {
		w := &c.words[id]
		all[i] = occurrence{id, w.times}
		if w.times = 0; !w.written {
			w.written = true
			c.fresh = append(c.fresh, id)
		}
	}
	return all
}

// id returns the number of a word.
func (c *counting) id(word string) int32 {
	id, known := c.ids[word]
	if !known {
		id = int32(len(c.words)) // a source has at most 16 MB
		word = strings.Clone(word)
		c.ids[word] = id
		c.words = append(c.words, counted{text: word, key: key(c.bot, word), stem: id})
	}
	return id
}

// stem finds the English stems of the fresh words. A stop word has none. Each word is stemmed once.
func (c *counting) stem(ctx context.Context, tx pgx.Tx) error {
	var words []string
	for _, id := range c.fresh {
		if text := c.words[id].text; isLatin(text) && !numbered(text) {
			words = append(words, text)
		}
	}
	c.fresh = c.fresh[:0]
	stems, err := stemsOf(ctx, tx, words)
	for word, of := range stems {
		stem := c.id(of)
		c.words[c.ids[word]].stem = stem
	}
	return err
}

// stemsOf returns the English stems of words. It leaves out stop words and words that equal their stem.
func stemsOf(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, words []string,
) (map[string]string, error) {
	stems := map[string]string{}
	if len(words) == 0 {
		return stems, nil
	}
	rows, _ := db.Query(ctx, `select word, stem[1] from (select word, ts_lexize('english_stem', word) as stem from unnest($1::text[]) word) s
		where stem <> array[word] and stem <> '{}'`, words)
	var word, of string
	if _, err := pgx.ForEachRow(rows, []any{&word, &of}, func() error {
		stems[word] = of
		return nil
	}); err != nil {
		return nil, fmt.Errorf("stem words: %w", err)
	}
	return stems, nil
}

// keys returns the sorted keys of a chunk's words and stems, and the marks with the numbers of their occurrences. It also counts the chunk,
// so it is called once for each chunk.
func (c *counting) keys(chunk []occurrence) (keys []int64, marks []byte) {
	there := c.there[:0]
	has := func(id, times int32) {
		if c.words[id].times == 0 {
			there = append(there, id)
		}
		c.words[id].times += times
	}
	for _, o := range chunk {
		has(o.word, o.times)
		if stem := c.words[o.word].stem; stem != o.word {
			has(stem, o.times)
		}
	}
	c.there = there
	slices.SortFunc(there, func(a, b int32) int { return cmp.Compare(c.words[a].key, c.words[b].key) })
	keys, marks = make([]int64, len(there)), make([]byte, 0, markSize*len(there))
	for i, id := range there {
		w := &c.words[id]
		keys[i] = w.key
		marks = append(binary.BigEndian.AppendUint32(marks, uint32(w.key>>32)), byte(min(w.times, math.MaxUint8))) // no overflow
		w.times = 0
		w.chunks++
	}
	return keys, marks
}

// markSize is the size of a mark: four bytes of a key, and the number of occurrences.
const markSize = 5

// timesOf returns the number of occurrences of a key's word in the chunk with these marks.
func timesOf(marks []byte, key int64) int64 {
	start := func(i int) int32 { return int32(binary.BigEndian.Uint32(marks[markSize*i:])) } // its bits
	wanted := int32(key >> 32)                                                               // its bits
	i := sort.Search(len(marks)/markSize, func(i int) bool { return start(i) >= wanted })
	if markSize*i >= len(marks) || start(i) != wanted {
		return 0
	}
	return int64(marks[markSize*i+markSize-1])
}

// write adds the counted words of the given number of chunks to the bot's words. The caller must hold the bot's lock. The empty word counts
// all chunks.
func (c *counting) write(ctx context.Context, tx pgx.Tx, chunks int64) error {
	c.words = append(c.words, counted{chunks: chunks})
	slices.SortFunc(c.words, func(a, b counted) int { return cmp.Compare(a.text, b.text) })
	words, counts := make([]string, len(c.words)), make([]int64, len(c.words))
	for i, w := range c.words {
		words[i], counts[i] = w.text, w.chunks
	}
	rows, _ := tx.Query(ctx, `
		update knowledge.term t set chunks = t.chunks + w.chunks from unnest($2::text[], $3::bigint[]) w (word, chunks)
		where t.bot_id = $1 and t.word = w.word returning t.word, t.seeks = '{}'`, c.bot, words, counts)
	known := map[string]bool{} // whether its trigrams are stored
	var word string
	var bare bool
	_, err := pgx.ForEachRow(rows, []any{&word, &bare}, func() error {
		known[word] = !bare
		return nil
	})
	grams := trigrams{c.bot, map[string]int64{}}
	for _, w := range c.words {
		if able, there := known[w.text]; err == nil && there && !able && w.sought() { // it was only a stem before
			_, err = tx.Exec(ctx, `update knowledge.term set seeks = $3 where bot_id = $1 and word = $2`, c.bot, w.text, grams.seekers(w.text))
		}
	}
	c.words = slices.DeleteFunc(c.words, func(w counted) bool {
		_, there := known[w.text]
		return there
	})
	if err == nil {
		// seeks in the text format of Postgres arrays: unnest does not accept arrays of different lengths
		words, counts, seeks := words[:len(c.words)], counts[:len(c.words)], make([]string, len(c.words))
		for i, w := range c.words {
			words[i], counts[i], seeks[i] = w.text, w.chunks, "{}"
			if w.sought() {
				seeks[i] = strings.NewReplacer("[", "{", " ", ",", "]", "}").Replace(fmt.Sprint(grams.seekers(w.text)))
			}
		}
		_, err = tx.Exec(ctx, `insert into knowledge.term (bot_id, word, chunks, seeks)
			select $1, word, chunks, seeks::bigint[] from unnest($2::text[], $3::bigint[], $4::text[]) w (word, chunks, seeks)`, c.bot,
			words, counts, seeks)
	}
	if err != nil {
		return fmt.Errorf("count the words of bot %d: %w", c.bot, err)
	}
	return nil
}

// sought reports whether a word is found by its trigrams too.
func (w counted) sought() bool { return w.written && !numbered(w.text) }

// trigrams caches the keys of a bot's trigrams.
type trigrams struct {
	bot  int64
	keys map[string]int64
}

// seekers returns the keys of some of a word's trigrams. Any two similar words have one of these in common, because seekers omits fewer
// trigrams than similar words must share. It omits the last ones in a fixed order. Frequent trigrams, such as the first of a word, are last
// in that order.
func (g trigrams) seekers(word string) []int64 {
	type gram struct {
		first int // 1: the trigram is the first of its word
		key   int64
	}
	texts := wording.Grams(word)
	all := make([]gram, len(texts))
	for i, text := range texts {
		k, known := g.keys[text]
		if !known {
			k = key(g.bot, text)
			g.keys[text] = k
		}
		all[i].key = k
		if text[0] == ' ' {
			all[i].first = 1
		}
	}
	slices.SortFunc(all, func(a, b gram) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.key, b.key)) })
	keys := make([]int64, len(all)-(similar*len(all)+99)/100+1)
	for i := range keys {
		keys[i] = all[i].key
	}
	return keys
}

// numbered reports whether a word has a digit.
func numbered(word string) bool { return strings.ContainsFunc(word, unicode.IsDigit) }
