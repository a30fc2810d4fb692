// Package marketplaceproj has the projections of the marketplace area.
package marketplaceproj

import (
	_ "embed"

	"bahi/domain/event"
	"bahi/domain/marketplace/company"
	"bahi/domain/patch"
	"bahi/domain/person"
	"bahi/domain/wording"
	"bahi/projections"
)

//go:embed companies.sql
var companiesDDL string

// Companies has the directory of companies.
var Companies = projections.Define("companies", 6,
	companiesDDL+projections.RowCountDDL("company", "true", "category_key?", "city_key?", "verified"),
	projections.On(func(b *projections.Batch, e event.Recorded[company.Created]) {
		b.Exec(`
			insert into company (id, workspace_id, slug, name, claims_domain, verified, created_at, updated_at, revision)
			values ($1, $2, $3, $4, $5, false, $6, $6, $7)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Slug, e.Data.Name, e.Data.DomainKey != "", e.At, e.Revision)
		b.Exec(`insert into company_name (company_id, workspace_id, name, created_at, from_position) values ($1, $2, $3, $4, $5)`,
			e.StreamID(), e.Meta.Workspace, e.Data.Name, e.At, e.Position)
		described(b, e.StreamID(), patch.Set(e.Data.Name), patch.Texts(&e.Data.Profile))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.Edited]) {
		b.Set("company", e.StreamID(), "name", e.Data.Name, "verified", e.Data.Verified, "updated_at", e.At, "revision", e.Revision)
		if e.Data.DomainKey.Present() {
			b.Set("company", e.StreamID(), "claims_domain", e.Data.DomainKey.Value != "")
		}
		if e.Data.Name.Present() {
			b.Exec(`
				with earlier as (`+endName+` returning workspace_id, created_at)
				insert into company_name (company_id, workspace_id, name, created_at, from_position)
				select $1, workspace_id, $3, created_at, $2 from earlier`, e.StreamID(), e.Position, e.Data.Name.Value)
		}
		described(b, e.StreamID(), e.Data.Name, patch.Texts(&e.Data.Profile))
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.Deleted]) {
		b.Exec(`delete from company where id = $1`, e.StreamID())
		b.Exec(endName, e.StreamID(), e.Position)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.EmailNamed]) {
		b.Set("company", e.StreamID(), "email_key", e.Data.Key, "updated_at", e.At, "revision", e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[company.EmailConfirmed]) {
		b.Set("company", e.StreamID(), "updated_at", e.At, "revision", e.Revision)
	}),
)

const endName = `update company_name set to_position = $2 where company_id = $1 and to_position = 9223372036854775807`

// compared are the fields that filters compare. searched are the fields with searchable words, besides the name.
var (
	compared = map[string]bool{"category": true, "city": true}
	searched = map[string]bool{"category": true, "sub_category": true, "city": true, "description": true}
)

// described writes the changed fields of a company, and the words of searchable fields.
func described(b *projections.Batch, id string, name patch.Field[string], fields []patch.Text) {
	var (
		columns []any
		found   []string
	)
	word := func(column string, f patch.Field[string]) {
		words := wording.Words(f.Value)
		found = append(found, words...)
		columns = append(columns, column+"_words", append([]string{}, words...))
	}
	if name.Present() {
		word("name", name)
	}
	for _, f := range fields {
		if !f.Present() {
			continue
		}
		columns = append(columns, f.Name, *f.Field)
		if compared[f.Name] {
			columns = append(columns, f.Name+"_key", patch.Field[string]{Value: person.Folded(f.Value), State: f.State})
		}
		if searched[f.Name] {
			word(f.Name, *f.Field)
		}
	}
	b.Set("company", id, columns...)
	learned(b, found)
}

// learned adds words to the vocabulary of searches. Most words are in it already, so learned looks up each word once by its first trigram,
// not once per trigram.
func learned(b *projections.Batch, words []string) {
	distinct, grams := wording.VocabularyOf(words)
	if len(distinct) == 0 {
		return
	}
	b.Exec(`
		with fresh as materialized (
			select w.word, w.grams from (select word, string_to_array(lines, E'\n') as grams from unnest($1::text[], $2::text[]) n (word, lines)) w
			where not exists (select from trigram g where g.gram = w.grams[1] and g.word = w.word)
		)
		insert into trigram (gram, word, size)
		select g.gram, fresh.word, cardinality(fresh.grams) from fresh, unnest(fresh.grams) g (gram)
		on conflict do nothing`, distinct, grams)
}
