package orderdraft

import (
	"cmp"
	"slices"

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
)

// Propose returns the clients with names similar to a name, in descending order of similarity.
func Propose(name string, clients []Client) []Proposal {
	found := []Proposal{}
	for _, c := range clients {
		if alike := wording.Similarity(name, c.Name); alike >= minAlike {
			found = append(found, Proposal{ClientID: c.ID, Name: c.Name, Confidence: unit.Share(alike) * unit.Share(unit.Whole) / 1000})
		}
	}
	slices.SortFunc(found, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.ClientID, b.ClientID))
	})
	return found[:min(len(found), maxProposals)]
}
