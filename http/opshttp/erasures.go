package opshttp

import (
	"context"
	"net/http"

	"bahi/commands"
	"bahi/http/api"
)

// eraser erases persons in all areas.
type eraser interface {
	// EraseEverywhere erases all subjects with an address or a phone, and returns their number.
	EraseEverywhere(ctx context.Context, req commands.Request, email, phone string) (subjects int, err error)
}

// Erased is the response to an erasure.
type Erased struct {
	Subjects int `json:"subjects" doc:"Number of erased accounts, contacts, buyers, senders and invitations"`
}

// Erasures registers the erasure of a person by address or phone.
func (r *Routes) Erasures() {
	api.Handle(r.API, api.Op{
		ID: "erase-person", Method: "POST", Path: "/ops/erasures",
		Summary: "Erase a person from all areas. By email, phone or both. Names in ledger rows stay.",
		Tags:    tags, Operator: true, Status: http.StatusAccepted, NoKey: true,
	}, func(ctx context.Context, in *struct {
		Body struct {
			Email string `json:"email,omitempty" maxLength:"254" doc:"Email address of the person"`
			Phone string `json:"phone,omitempty" maxLength:"40" doc:"Phone number of the person"`
		}
	}) (*api.Body[Erased], error) {
		subjects, err := r.Eraser.EraseEverywhere(ctx, api.Request(ctx), in.Body.Email, in.Body.Phone)
		return api.Answer(Erased{Subjects: subjects}, err)
	})
}
