package khatapage

import (
	"slices"
	"strings"

	"bahi/domain/unit"
)

// prove finds a weight, a touch and their fine weight among consecutive numbers, regardless of columns. If text recognition has joined or
// split such numbers, prove splits or joins them again.
func prove(numbers []amountOf) (all []amountOf, proven bool) {
	for at := range numbers {
		for _, way := range ways(numbers[at:]) {
			if !proves(way.three) {
				continue
			}
			kinds := order[2:5]
			if k := []string{way.three[0].kind, way.three[1].kind, way.three[2].kind}; k[2] == fineColumn && k[0] == touchColumn &&
				k[1] == weightColumn {
				kinds = k
			}
			for i := range way.three {
				way.three[i].kind, way.three[i].proven, way.three[i].doubtful = kinds[i], true, false
			}
			return slices.Concat(numbers[:at], way.three, numbers[at+way.count:]), true
		}
	}
	return numbers, false
}

// way is an interpretation of the first numbers as a weight, a touch and a fine weight.
type way struct {
	three []amountOf
	count int
}

func ways(numbers []amountOf) (all []way) {
	if len(numbers) >= 3 {
		all = append(all, way{slices.Clone(numbers[:3]), 3}, way{slices.Clone(numbers[:3]), 3})
		for i, n := range all[1].three { // points that were read as commas
			if at := strings.LastIndex(n.Text, ","); n.grouped && at >= 0 {
				n.Text = n.Text[:at] + "." + n.Text[at+1:]
				if n, ok := number(n.Word, false); ok {
					n.Text, n.kind = numbers[i].Text, numbers[i].kind
					all[1].three[i] = n
				}
			}
		}
		all = append(all, recut(numbers)...)
	}
	if len(numbers) >= 4 {
		for i := range 3 {
			a, b := numbers[i], numbers[i+1]
			if n, ok := number(Word{Left: a.Left, Right: b.Right, Top: a.Top, Bottom: a.Bottom, Text: a.Text + "." + b.Text}, false); ok {
				all = append(all, way{slices.Concat(numbers[:i], []amountOf{n}, numbers[i+2:4]), 4})
			}
		}
	}
	var found []way
	for i := range min(len(numbers), 2) {
		if len(numbers) < 2 {
			break
		}
		runes := []rune(numbers[i].Text)
		for cut := 1; cut < len(runes); cut++ {
			a, okA := number(Word{Text: string(runes[:cut])}, false)
			b, okB := number(Word{Text: string(runes[cut:])}, false)
			if !okA || !okB || a.cut {
				continue
			}
			a.Word, b.Word = numbers[i].Word, numbers[i].Word
			a.Text, b.Text = string(runes[:cut]), string(runes[cut:])
			w := way{slices.Concat(numbers[:i], []amountOf{a, b}, numbers[i+1:2]), 2}
			if proves(w.three) {
				found = append(found, w)
			}
		}
	}
	if len(found) == 1 { // several ways are ambiguous
		all = append(all, found[0])
	}
	return all
}

// recut joins two neighbours of three numbers by a point and cuts them elsewhere, as in 742.97 92.5687 247 for 742.97 92.5 687.247. Several
// ways are ambiguous.
func recut(numbers []amountOf) (found []way) {
	for i := range 2 {
		runes := []rune(numbers[i].Text + "." + numbers[i+1].Text)
		for cut := 1; cut < len(runes); cut++ {
			a, okA := number(Word{Text: string(runes[:cut])}, false)
			b, okB := number(Word{Text: string(runes[cut:])}, false)
			if !okA || !okB || a.cut || runes[cut] == '.' {
				continue
			}
			a.Word, b.Word = numbers[i].Word, numbers[i+1].Word
			if w := (way{slices.Concat(numbers[:i], []amountOf{a, b}, numbers[i+2:3]), 3}); proves(w.three) {
				found = append(found, w)
			}
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found
}

// proves reports whether the third of three numbers is the product of the others, a weight and a touch in either order.
func proves(three []amountOf) bool {
	for _, n := range three {
		if n.repeats || n.unit == "rs" || n.thousandths <= 0 || n.thousandths > int64(unit.MaxGrams) || n.kind == amountColumn && n.grouped {
			return false
		}
	}
	weight, touch, fine := three[0].thousandths, three[1].thousandths, three[2].thousandths
	if three[0].kind == touchColumn && three[1].kind == weightColumn {
		weight, touch = touch, weight
	}
	place := []int64{10, 10, 10, 1}[min(three[2].places, 3)] // thousandths
	return touch >= int64(unit.Whole)/10 && touch <= int64(unit.Whole) && isProduct(weight, touch, fine, place)
}
