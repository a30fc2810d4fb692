// Package orders reads orders with a language model: the text of a chat message, or a picture. The result is a proposal within the limits
// of ordertext, whatever instructions the message had for the model.
package orders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"bahi/domain/ledger/ordertext"
	"bahi/domain/person"
	"bahi/domain/unit"
	"bahi/providers/llm"
)

// Reader reads orders.
type Reader struct {
	Model *llm.Client
	Fetch *http.Client // fetches the pictures of messages, and MUST reach public addresses only
}

const (
	fetchTimeout = 10 * time.Second
	maxFile      = 16 << 20
	maxText      = 16_000 // bytes that a model gets
	maxDigits    = 20     // digits of a number
)

const rules = `You read orders for a jewelry workshop in India from chat messages in English, Hindi, Gujarati or a mix.
List every item that is ordered, in the order of the message. For each:
- item_name: the piece, as it is written, without weight, quantity and client.
- weight: in grams as a number, or null. 1 kg is 1000, 1 tola is 11.664.
- quantity: the number of pieces, or null. A dozen is 12.
- client_name: for whom the item is, if the message says so, or null.
slip_number: the number of the order slip, if the message has one, or null.
Never invent a value: what is not written is null. A greeting or a question orders nothing.`

// answer is the form of the model's answer.
type answer struct {
	Slip    *string `json:"slip_number"`
	Entries []struct {
		Item     string       `json:"item_name"`
		Weight   *json.Number `json:"weight"`
		Quantity *json.Number `json:"quantity"`
		Client   *string      `json:"client_name"`
	} `json:"entries"`
}

// ReadOrder reads the text of a message and its picture: media is a JSON object with a url, "" for none. Without a vision model, or if the
// file is not a picture, it reads the text alone.
func (r Reader) ReadOrder(ctx context.Context, text, media string) (ordertext.Order, error) {
	q := llm.Question{Rules: rules, Data: strings.ToValidUTF8(text[:min(len(text), maxText)], "")}
	var failed error
	if media != "" && r.Model.Sees() {
		picture, err := r.picture(ctx, media)
		if err == nil {
			q.Images = []llm.Image{picture}
		}
		failed = err
	}
	if q.Images == nil && (strings.TrimSpace(text) == "" || !r.Model.Chats()) {
		return ordertext.Order{}, failed
	}
	a, err := llm.Extract(ctx, r.Model, q, func(answer) error { return nil })
	if err != nil {
		return ordertext.Order{}, err
	}
	return a.within(text), nil
}

// picture fetches the file of a message. Its errors contain no address.
func (r Reader) picture(ctx context.Context, media string) (llm.Image, error) {
	var file struct{ URL string }
	if json.Unmarshal([]byte(media), &file) != nil || file.URL == "" {
		return llm.Image{}, errors.New("the message's file has no address")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, file.URL, http.NoBody)
	if err != nil || request.URL.User != nil {
		return llm.Image{}, errors.New("the message's file has no address that can be called")
	}
	response, err := r.Fetch.Do(request)
	if err != nil {
		return llm.Image{}, errors.New("the message's file cannot be reached")
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusOK {
		return llm.Image{}, fmt.Errorf("the message's file was refused with status %d", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxFile+1))
	if err != nil || len(data) > maxFile {
		return llm.Image{}, errors.New("the message's file ended early, or is too large")
	}
	return llm.Picture(data)
}

// The confidences of a model's entries, in percent. They depend on whether the rules find the same numbers in the text.
const (
	agreed = 90
	alone  = 60
)

// within returns the order within its limits (CONTRACT.md I13). A number outside a limit becomes unknown.
func (a answer) within(text string) (o ordertext.Order) {
	byRules := ordertext.Parse(text).Entries
	slip := ordertext.Tidy(known(a.Slip), ordertext.MaxSlip)
	for _, e := range a.Entries {
		read := ordertext.Entry{Item: ordertext.Tidy(e.Item, ordertext.MaxItem), Client: ordertext.Tidy(known(e.Client), ordertext.MaxClient),
			Slip: slip, Confidence: alone}
		if read.Item == "" {
			continue
		}
		if len(o.Entries) == ordertext.MaxEntries {
			o.Cut = true
			break
		}
		if grams := number(e.Weight).Shift(unit.GramsPlaces).Round(0); grams.IsPositive() &&
			grams.LessThanOrEqual(decimal.New(ordertext.MaxWeight, 0)) {
			read.Weight = unit.Grams(grams.IntPart())
		}
		if pieces := number(e.Quantity); pieces.IsInteger() && pieces.IsPositive() &&
			pieces.LessThanOrEqual(decimal.New(ordertext.MaxQuantity, 0)) {
			read.Quantity = pieces.IntPart()
		}
		for _, other := range byRules {
			if other.Weight == read.Weight && other.Quantity == read.Quantity && read.Weight != 0 {
				if read.Slip = cmp.Or(other.Slip, slip); written(text, read.Item, read.Client, read.Slip) {
					read.Confidence = agreed
				}
			}
		}
		o.Entries = append(o.Entries, read)
	}
	o.Unused = leftOut(byRules, o.Entries)
	for i := range o.Entries {
		if o.Unused != nil {
			o.Entries[i].Confidence = alone
		}
	}
	return o
}

// written reports whether all words of the values are in the text.
func written(text string, values ...string) bool {
	text = person.Folded(text)
	return !slices.ContainsFunc(strings.Fields(person.Folded(strings.Join(values, " "))), func(word string) bool {
		return !strings.Contains(text, word)
	})
}

// leftOut returns the items that the rules are sure of, and that the model has neither by number nor by name.
func leftOut(byRules, byModel []ordertext.Entry) (items []string) {
	for _, r := range byRules {
		found := slices.ContainsFunc(byModel, func(m ordertext.Entry) bool {
			return r.Weight != 0 && m.Weight == r.Weight || r.Weight == 0 && m.Quantity == r.Quantity || written(r.Item, m.Item)
		})
		if r.Confidence > alone && r.Item != "" && !found && len(items) < ordertext.MaxUnused {
			items = append(items, r.Item)
		}
	}
	return items
}

// number returns 0 for a non-number, and for one with an exponent or too many digits.
func number(text *json.Number) decimal.Decimal {
	if text == nil || len(*text) > maxDigits || strings.ContainsAny(text.String(), "eE") {
		return decimal.Zero
	}
	n, err := decimal.NewFromString(text.String())
	if err != nil {
		return decimal.Zero
	}
	return n
}

func known(text *string) string {
	if text == nil || *text == "null" {
		return ""
	}
	return *text
}
