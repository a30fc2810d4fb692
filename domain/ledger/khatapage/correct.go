package khatapage

import (
	"strings"

	"bahi/domain/unit"
)

// computed returns the fine weight. If it is absent, it returns the product of the weight and the touch (CONTRACT.md
// 5.3).
func computed(weight *unit.Grams, touch *unit.Percent, fine *unit.Grams) *unit.Grams {
	if fine != nil || weight == nil || touch == nil || *weight < 0 || *weight > unit.MaxGrams {
		return fine
	}
	return new((*weight*unit.Grams(*touch) + unit.Grams(unit.Whole)/2) / unit.Grams(unit.Whole))
}

// checkMetal checks whether the weight, the touch and the fine weight agree, and computes an absent fine weight.
func (c *cell) checkMetal(r *reader) {
	if c.touch != nil && *c.touch > unit.Whole {
		text := c.touch.String()
		if *c.touch /= 10; *c.touch > unit.Whole {
			c.touch = nil
		}
		r.doubt(c, "%q of the line %q is too large for a touch", text, c.raw)
	}
	if c.weight == nil && (c.touch != nil || c.fine != nil) && !c.doubtful {
		r.doubt(c, "the line %q has metal, and no weight", c.raw)
	}
	if c.touch == nil && c.weight != nil && c.fine != nil {
		if touch, found := touchOf(int64(*c.weight), int64(*c.fine)); found {
			c.touch = new(unit.Percent(touch))
			r.doubt(c, "the touch of the line %q cannot be read, it is computed from its weight and fine weight", c.raw)
		}
	}
	if c.fine = computed(c.weight, c.touch, c.fine); c.weight == nil || c.touch == nil || c.fine == nil {
		return
	}
	switch {
	case !c.scaled:
		r.doubt(c, "a comma in the line %q may be a point", c.raw)
	case follows(*c.weight, *c.touch, *c.fine) || c.repaired():
	case c.corrected():
		r.doubt(c, "the fine weight of the line %q is not its weight by its touch: one digit is corrected", c.raw)
	default:
		r.doubt(c, "the fine weight of the line %q is not its weight by its touch", c.raw)
	}
}

// follows reports whether the fine weight is the product of the weight and the touch, rounded or cut at its last digit.
func follows(weight unit.Grams, touch unit.Percent, fine unit.Grams) bool {
	place := unit.Grams(1)
	for place < 10 && fine%(10*place) == 0 {
		place *= 10
	}
	return isProduct(int64(weight), int64(touch), int64(fine), int64(place))
}

// isProduct reports whether a fine weight is the product of a weight and a touch, rounded or cut at a place in thousandths.
func isProduct(weight, touch, fine, place int64) bool {
	product, whole := weight*touch, int64(unit.Whole)
	return product >= fine*whole && product < (fine+place)*whole || // cut
		2*product >= (2*fine-place)*whole && 2*product <= (2*fine+place)*whole
}

// repaired moves decimal points that were misread. It does so only if exactly one reading of the numbers gives the fine
// weight.
func (c *cell) repaired() bool {
	type reading struct {
		weight, fine unit.Grams
		touch        unit.Percent
	}
	var found []reading
	for _, w := range []unit.Grams{1, 10, 100, 1000} {
		for _, t := range []unit.Percent{1, 10, 100} {
			for _, f := range []unit.Grams{1, 10, 100, 1000} {
				one := reading{*c.weight / w, *c.fine / f, *c.touch / t}
				exact := one.weight*w == *c.weight && one.touch*t == *c.touch && one.fine*f == *c.fine
				if exact && one.touch >= unit.Whole/10 && one.touch <= unit.Whole && one.fine > 0 &&
					isProduct(int64(one.weight), int64(one.touch), int64(one.fine), 1) {
					found = append(found, one)
				}
			}
		}
	}
	if len(found) == 0 {
		return false
	}
	*c.weight, *c.touch, *c.fine = found[0].weight, found[0].touch, found[0].fine // with the fewest moved points
	c.inferred = true
	return true
}

// tenth is a tenth of a percent of touch, the usual smallest step.
const tenth = int64(unit.Whole) / 1000

// touchOf returns the touch by which a weight gives a fine weight, if exactly one with at most one decimal does.
func touchOf(weight, fine int64) (touch int64, found bool) {
	for t := 100 * tenth; weight > 0 && t <= 1000*tenth; t += tenth {
		if isProduct(weight, t, fine, 1) {
			if found {
				return 0, false
			}
			touch, found = t, true
		}
	}
	return touch, found
}

// corrected corrects one digit that was misread, lost or read twice. It does so only if exactly one such reading of the numbers gives the
// fine weight. A digit that was read twice is the most likely.
func (c *cell) corrected() bool {
	read := [3]int64{int64(*c.weight), int64(*c.touch), int64(*c.fine)}
	for _, readings := range []func(string) []string{twice, misreadings} {
		found := map[[3]int64]bool{}
		var right [3]int64
		for i, n := range read {
			for _, text := range readings(unit.Grams(n).String()) {
				one := read
				other, err := unit.ParseGrams(text)
				if one[i] = int64(other); err == nil && one[0] > 0 && one[1]%tenth == 0 && one[1] >= 100*tenth && one[1] <= 1000*tenth &&
					isProduct(one[0], one[1], one[2], 1) {
					right, found[one] = one, true
				}
			}
		}
		if len(found) == 1 {
			*c.weight, *c.touch, *c.fine = unit.Grams(right[0]), unit.Percent(right[1]), unit.Grams(right[2])
			return true
		}
	}
	return false
}

// twice returns a number without one of two equal neighbouring digits.
func twice(text string) (all []string) {
	for i := 1; i < len(text); i++ {
		if text[i] == text[i-1] {
			all = append(all, text[:i]+text[i+1:])
		}
	}
	return all
}

// misreadings returns the numbers that differ from a number by one digit: another, one more or one less.
func misreadings(text string) (all []string) {
	if !strings.Contains(text, ".") {
		text += "."
	}
	add := func(before, digit, after string) { all = append(all, strings.TrimSuffix(before+digit+after, ".")) }
	for i := range len(text) + 1 {
		isDigit := i < len(text) && text[i] != '.'
		if isDigit {
			add(text[:i], "", text[i+1:])
		}
		for d := '0'; d <= '9'; d++ {
			if add(text[:i], string(d), text[i:]); isDigit {
				add(text[:i], string(d), text[i+1:])
			}
		}
	}
	return all
}
