package ledgerview

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"bahi/domain/unit"
)

// Words returns the text of an entry without the amount: first the description, then the other values in order. An entry of any ledger is
// an object of plain values.
func Words(entry json.RawMessage) string {
	var (
		words   []string
		decoder = json.NewDecoder(bytes.NewReader(entry))
	)
	decoder.UseNumber()
	_, _ = decoder.Token() // {
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		key, _ := name.(string)
		spaced := strings.ReplaceAll(key, "_", " ")
		switch text := plain(value); key {
		case "amount", "computed":
		case "description", "item_name":
			words = slices.Insert(words, 0, text)
		case "kind", "rate_unit": // an enum value, shown in words
			words = append(words, strings.ReplaceAll(text, "_", " "))
		case "counter":
			words = append(words, spaced)
		default:
			words = append(words, spaced+" "+text)
		}
	}
	return strings.Join(words, ", ")
}

// plain returns a value without quotes, and a number with commas.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return unit.Indian(string(value))
}
