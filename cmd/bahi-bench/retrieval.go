package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"bahi/commands/messaging/knowledge"
	"bahi/commands/messaging/knowledge/labelled"
	"bahi/internal/bench"
	"bahi/internal/cli/screen"
)

const (
	chunkWords  = 350 // of 2,000 to 3,000 characters
	chunksOf    = 500 // of a source
	passagesOf  = 6
	retrieveFor = 30.0
)

// noModel makes no vectors.
type noModel struct{}

func (noModel) Embeds() string                                       { return "" }
func (noModel) Embed(context.Context, []string) ([][]float32, error) { return nil, nil }

// retrieval measures how well and how fast passages are found by their words, among few chunks and many.
func (b *benchmark) retrieval(ctx context.Context) error {
	sys, err := b.onDatabase(ctx, "retrieval")
	if err != nil {
		return err
	}
	defer sys.Close()
	store := &knowledge.Store{Pool: sys.Pool, Model: noModel{}}
	var questions []string
	for i, d := range labelled.Documents() {
		if _, err := store.Put(ctx, 1, int64(i+1), d.Title, knowledge.Chunks(knowledge.Text(d.Text))); err != nil {
			return err
		}
		questions = append(questions, d.Questions...)
	}
	if err := b.recall(ctx, store); err != nil {
		return err
	}
	for i, size := range []int{b.Rows / 1000, b.Rows / 20, b.Rows / 2} {
		bot := int64(2 + i)
		if err := b.fillBot(ctx, store, bot, size); err != nil {
			return err
		}
		if _, err := sys.Pool.Exec(ctx, `vacuum analyze knowledge.chunk, knowledge.term`); err != nil {
			return err
		}
		next := 0
		search := func() (bench.Sample, error) {
			var took []time.Duration
			for began := time.Now(); len(took) == 0 || time.Since(began) < b.Round; next++ {
				one := time.Now()
				if _, err := store.Search(ctx, bot, questions[next%len(questions)], passagesOf); err != nil {
					return bench.Sample{}, err
				}
				took = append(took, time.Since(one))
			}
			return bench.SampleOf(took, b.Round), nil
		}
		limit, found, err := b.interleave(ctx, fmt.Sprintf("passages of %d chunks", size), func() (bench.Sample, error) { return b.limits.Selects(ctx, 1) }, search)
		if err != nil {
			return err
		}
		f := bench.Figure{Name: []string{"retrieve_1000", "retrieve_50000", "retrieve_500000"}[i], Title: fmt.Sprintf("passages of a question among %d chunks: p50", size), Unit: "ms"}
		if i == 1 {
			f.Goal = bench.AtMost(retrieveFor)
		}
		b.conclude(f, found[0].By(bench.P50), "one-row SELECT", limit.By(bench.P50))
		b.conclude(bench.Figure{Name: f.Name + "_p99", Title: "the same: p99", Unit: "ms"}, found[0].By(bench.P99), "", nil)
	}
	return nil
}

// recall measures which part of the labelled questions find their document.
func (b *benchmark) recall(ctx context.Context, store *knowledge.Store) error {
	for _, of := range []struct {
		name, title string
		questions   func(labelled.Document) []string
	}{
		{"recall", "questions that find their document among 6 passages, by words alone", func(d labelled.Document) []string { return d.Questions }},
		{"recall_others", "the same, in other words than the document's", func(d labelled.Document) []string { return d.Others }},
	} {
		found, total := 0, 0
		for i, d := range labelled.Documents() {
			for _, question := range of.questions(d) {
				passages, err := store.Search(ctx, 1, question, passagesOf)
				if err != nil {
					return err
				}
				total++
				if slices.ContainsFunc(passages, func(p knowledge.Passage) bool { return p.Source == int64(i+1) }) {
					found++
				}
			}
		}
		b.conclude(bench.Figure{Name: of.name, Title: of.title, Unit: "of 1", Goal: bench.AtLeast(0.9)}, []float64{float64(found) / float64(total)}, "", nil)
	}
	return nil
}

// fillBot gives a bot so many chunks, of words of the labelled documents and of others.
func (b *benchmark) fillBot(ctx context.Context, store *knowledge.Store, bot int64, size int) error {
	random := rand.New(rand.NewPCG(seed, uint64(bot))) //nolint:gosec // the same chunks in each run
	var known []string
	for _, d := range labelled.Documents() {
		known = append(known, strings.Fields(d.Text)...)
	}
	b.sayf("making %d chunks", size)
	bar := screen.NewBar(os.Stderr, "making chunks", "chunks")
	defer bar.End()
	for done, source := 0, int64(0); done < size; source++ {
		of := min(chunksOf, size-done)
		if _, err := store.Put(ctx, bot, bot<<32+source, "", func(yield func(string, error) bool) {
			for range of {
				var text strings.Builder
				for range chunkWords {
					word := benchWord(random)
					if random.IntN(10) == 0 {
						word = known[random.IntN(len(known))]
					}
					text.WriteString(word + " ")
				}
				if !yield(text.String(), nil) {
					return
				}
			}
		}); err != nil {
			return err
		}
		if err := store.Index(ctx); err != nil {
			return err
		}
		done += of
		bar.Show(int64(done), int64(size))
	}
	return nil
}
