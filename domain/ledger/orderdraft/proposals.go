package orderdraft

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"bahi/domain/unit"
	"bahi/domain/wording"
)

// Client is a client of a workspace, with the normalised name for comparison.
type Client struct {
	ID   int64
	Name string
}

const (
	maxProposals = 3
	minAlike     = 400 // thousandths
	sharedAlike  = 600 // thousandths, of two names that share a rare word
	minWord      = 3   // characters of a rare word
)

// Propose returns the clients with names similar to a name, in descending order of similarity. Names that share a word of few clients are
// similar: Mehta Jewellers and Mehta Ornaments.
func Propose(name string, clients []Client) []Proposal {
	found, sharing := []Proposal{}, map[string][]int64{}
	for _, c := range clients {
		for _, word := range wording.Words(c.Name) {
			sharing[word] = append(sharing[word], c.ID)
		}
	}
	for _, c := range clients {
		alike := wording.Similarity(name, c.Name)
		for _, word := range wording.Words(name) {
			if same := sharing[word]; len(same) <= maxProposals && utf8.RuneCountInString(word) >= minWord && slices.Contains(same, c.ID) {
				alike = max(alike, sharedAlike)
			}
		}
		if alike >= minAlike {
			found = append(found, Proposal{ClientID: c.ID, Name: c.Name, Confidence: unit.Share(alike) * unit.Share(unit.Whole) / 1000})
		}
	}
	slices.SortFunc(found, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.ClientID, b.ClientID))
	})
	return found[:min(len(found), maxProposals)]
}
