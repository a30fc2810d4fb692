package unit

import "strings"

// Indian groups a number's digits by commas as in India: the last three, then pairs, as in 12,34,567.50.
func Indian(plain string) string {
	digits, negative := strings.CutPrefix(plain, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	var b strings.Builder
	if negative {
		b.WriteByte('-')
	}
	for i, r := range whole {
		left := len(whole) - i
		if i > 0 && left >= 3 && left%2 == 1 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	if point {
		b.WriteByte('.')
		b.WriteString(fraction)
	}
	return b.String()
}
