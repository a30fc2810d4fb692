package knowledge

import (
	"regexp"
	"slices"
	"strings"

	"bahi/domain/wording"
)

// dayFit is the quality of a match of a weekday by a range such as Mon to Sat. A line with the day itself matches better.
const dayFit = 0.9

var (
	weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	dayRange = regexp.MustCompile(`([\pL\pM]+)\.?(?:[ \t]*[-–—][ \t]*|[ \t]+(?:to|till|until|through|thru|se|thi|से|થી)[ \t]+)([\pL\pM]+)`)
)

// anyDay is the index of a word for days, such as in: which day are you closed?
const anyDay = 7

// weekday returns the index of the weekday that a word means, or -1.
func weekday(word string) int {
	found := -1
	if word == "weekday" {
		return anyDay
	}
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

// hours returns the words of a question. In a question for opening hours alone it replaces words for closing by a word for hours. Otherwise
// only the days on which a shop is closed would be found.
func hours(words []string) (all []string) {
	for _, w := range words {
		switch {
		case means(w, "close"):
			w = "hour"
		case means(w, "day"):
			w = "weekday"
		case !means(w, "hour") && !means(w, "shop") && weekday(w) < 0:
			return words
		}
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// daysIn reports which weekdays are in the ranges of a text, and whether it has any.
func daysIn(text string) (days [anyDay + 1]bool) {
	for term := range wording.Terms(text) {
		days[anyDay] = days[anyDay] || weekday(term) >= 0
	}
	for _, ends := range dayRange.FindAllStringSubmatch(strings.ToLower(text), -1) {
		from, to := weekday(ends[1]), weekday(ends[2])
		for day := from; from >= 0 && to >= 0; day = (day + 1) % anyDay {
			if days[day] = true; day == to {
				break
			}
		}
	}
	return days
}
