package company

import (
	"regexp"
	"strconv"
	"strings"

	"bahi/domain/wording"
)

// maxSlug is how long a slug may be, with the number that keeps it apart from others (CONTRACT.md 8.4).
const maxSlug = 80

// reserved are the slugs that have another meaning in a path (CONTRACT.md D24).
var reserved = map[string]bool{"search": true, "check-domain": true, "me": true, "new": true}

// idForm is the form of an id, which a slug never has.
var idForm = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsID reports whether a text from a path is an id, and no slug.
func IsID(text string) bool { return idForm.MatchString(text) }

// Slug returns the slug that a company of this name would like to have. One without a letter that can be written in ASCII gets one of its
// id.
func Slug(name, id string) string {
	slug := strings.Trim(apart.ReplaceAllString(strings.ToLower(wording.Romanised(name)), "-"), "-")
	if len(slug) > maxSlug {
		slug = strings.TrimRight(slug[:maxSlug], "-")
	}
	switch {
	case slug == "":
		return "company-" + id[max(0, len(id)-8):]
	case reserved[slug] || IsID(slug):
		return slug + "-company"
	}
	return slug
}

// Nth returns the slug of the nth company that would like to have one, from 1.
func Nth(slug string, n int) string {
	if n == 1 {
		return slug
	}
	number := "-" + strconv.Itoa(n)
	return strings.TrimRight(slug[:min(len(slug), maxSlug-len(number))], "-") + number
}

var apart = regexp.MustCompile(`[^a-z0-9]+`)
