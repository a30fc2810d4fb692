// Package khatas reads pictures of khata pages with a vision model.
package khatas

import (
	"context"
	"encoding/json"
	"strings"

	"bahi/domain/ledger/khatapage"
	"bahi/domain/ledger/ordertext"
	"bahi/domain/unit"
	"bahi/providers/llm"
)

// Sight reads pictures.
type Sight struct{ Model *llm.Client }

const rules = `You read a page of a khata, the account book of a jewelry workshop in India, from its picture. It is in English, Hindi, ` +
	`Gujarati or a mix.
List every entry in the order of the page. Jama, credit or received is the side "in"; naame, udhar, debit or given is the side "out". ` +
	`Where nothing says
which side is which, the left is "in". For each entry:
- side: in or out.
- date: YYYY-MM-DD, or null. A blank or a ditto mark repeats the date above.
- party_name: whose page or entry it is, or null.
- item_name: the text of the entry, or null. A ditto mark repeats the text above.
- weight, touch, fine_weight: grams, percent, grams of fine metal, or null.
- amount: rupees, or null.
Numbers are plain decimals in ASCII digits, without grouping. Leave out totals, opening balances and entries that are struck out.
Never invent a value: what is not written is null.`

// answer is the form of the model's answer.
type answer struct {
	Entries []struct {
		Side   string       `json:"side"`
		Date   *string      `json:"date"`
		Party  *string      `json:"party_name"`
		Item   *string      `json:"item_name"`
		Weight *json.Number `json:"weight"`
		Touch  *json.Number `json:"touch"`
		Fine   *json.Number `json:"fine_weight"`
		Amount *json.Number `json:"amount"`
	} `json:"entries"`
}

// See returns the entries of a page. A side or value outside the books' limits is unknown.
func (s Sight) See(ctx context.Context, image []byte) ([]khatapage.Entry, error) {
	picture, err := llm.Picture(image)
	if err != nil {
		return nil, err
	}
	a, err := llm.Extract(ctx, s.Model, llm.Question{Rules: rules, Images: []llm.Image{picture}}, func(answer) error { return nil })
	if err != nil {
		return nil, err
	}
	entries := []khatapage.Entry{}
	for _, e := range a.Entries {
		if len(entries) > khatapage.MaxEntries { // one more entry than the maximum shows that the page has more
			break
		}
		read := khatapage.Entry{
			Side: khatapage.SideOf(e.Side), Party: text(e.Party), Item: text(e.Item), Weight: number(e.Weight, unit.ParseGrams),
			Touch: number(e.Touch, unit.ParsePercent),
			Fine:  number(e.Fine, unit.ParseGrams), Amount: number(e.Amount, unit.ParseMoney),
		}
		if e.Date != nil {
			if date, err := unit.ParseDate(*e.Date); err == nil {
				read.Date = &date
			}
		}
		entries = append(entries, read)
	}
	return entries, nil
}

func text(given *string) *string {
	if given == nil {
		return nil
	}
	tidy := ordertext.Tidy(*given, ordertext.MaxItem)
	if tidy == "" {
		return nil
	}
	return &tidy
}

// number returns a positive number within the books' limits, nil for anything else.
func number[T ~int64](given *json.Number, parse func(string) (T, error)) *T {
	if given == nil || strings.HasPrefix(given.String(), "-") {
		return nil
	}
	n, err := parse(given.String())
	if err != nil || n == 0 {
		return nil
	}
	return &n
}
