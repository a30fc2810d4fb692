package knowledge

import (
	"regexp"
	"slices"
	"strings"
)

// dayFit is the quality of a match of a weekday by a range such as Mon to Sat. A line with the day itself matches better.
const dayFit = 0.9

var (
	weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	dayRange = regexp.MustCompile(`([\pL\pM]+)\.?(?:[ \t]*[-–—][ \t]*|[ \t]+(?:to|till|until|through|thru|se|thi|से|થી)[ \t]+)([\pL\pM]+)`)
)

// weekday returns the index of the weekday that a word means, or -1.
func weekday(word string) int {
	found := -1
	same := append(meaning(word), word)
	for i, day := range weekdays {
		if slices.Contains(same, day) {
			if found >= 0 { // weekend
				return -1
			}
			found = i
		}
	}
	return found
}

// daysIn reports which weekdays are in the ranges of a text.
func daysIn(text string) (days [7]bool) {
	for _, ends := range dayRange.FindAllStringSubmatch(strings.ToLower(text), -1) {
		from, to := weekday(ends[1]), weekday(ends[2])
		for day := from; from >= 0 && to >= 0; day = (day + 1) % len(days) {
			if days[day] = true; day == to {
				break
			}
		}
	}
	return days
}
