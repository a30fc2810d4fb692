package company

import (
	"regexp"
	"strconv"
	"strings"

	"bahi/domain/wording"
)

// maxSlug is the maximum length of a slug with its number (CONTRACT.md 8.4).
const maxSlug = 80

// reserved are the texts that are no slugs, because paths use them for something else (CONTRACT.md D24).
var reserved = map[string]bool{"search": true, "check-domain": true, "me": true, "new": true}

// idForm is the form of an id, which a slug never has.
var idForm = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsID reports whether a text from a path is an id and not a slug.
func IsID(text string) bool { return idForm.MatchString(text) }

// Slug returns the preferred slug of a company with this name. It derives the slug from the id if ASCII cannot express any letter of the
// name.
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

// Nth returns the slug of the nth company with a preferred slug, from 1.
func Nth(slug string, n int) string {
	if n == 1 {
		return slug
	}
	number := "-" + strconv.Itoa(n)
	return strings.TrimRight(slug[:min(len(slug), maxSlug-len(number))], "-") + number
}

var apart = regexp.MustCompile(`[^a-z0-9]+`)
