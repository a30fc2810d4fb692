package marketplacehttp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"bahi/domain/actor"
	"bahi/domain/person"
	"bahi/http/api"
	"bahi/readmodels"
)

// lookup reports whether a phone is on the chat network, or an error if that is unknown.
type lookup interface {
	OnChat(ctx context.Context, phone string) (bool, error)
}

// evidence reports whether a workspace's own messages prove that a phone is on the chat network.
type evidence interface {
	OnChat(ctx context.Context, at *readmodels.At, workspace uuid.UUID, phone string) (bool, error)
}

// loose is a text, or noText for any other JSON value. The operation accepts any JSON.
type loose string

const noText = loose("\x00")

// UnmarshalJSON never fails.
func (l *loose) UnmarshalJSON(data []byte) error {
	var text string
	if *l = noText; json.Unmarshal(data, &text) == nil && string(data) != "null" {
		*l = loose(text)
	}
	return nil
}

// chatCheck is the result for a phone.
type chatCheck struct {
	Phone   *string `json:"phone" doc:"Number in E.164 form; the received text if it is not a number"`
	IsValid bool    `json:"is_valid" doc:"true: the number is valid"`
	IsChat  bool    `json:"is_chat" doc:"true: the number is on the chat network"`
	Error   *string `json:"error" doc:"Error; null: none"`
}

// verifyChat registers the check of a phone. It never sends a message (CONTRACT.md 3.1.6, M17).
func (r *Routes) verifyChat() {
	api.Handle(r.API, open(api.Op{
		ID: "verify-chat", Method: "POST", Path: enquiries + "/verify-chat",
		Summary: "Check whether a phone number is valid and on the chat network",
		Status:  http.StatusOK, Limit: "enquiry_verify_chat", FieldErrorStatus: http.StatusBadRequest, NoKey: true,
		Reads: []string{"messages", "messaging_contacts"},
	}), func(ctx context.Context, in *struct {
		Body struct {
			Phone loose `json:"phone,omitempty" doc:"Phone number"`
		}
	}) (*api.Body[chatCheck], error) {
		sent := string(in.Body.Phone)
		if in.Body.Phone == "" || in.Body.Phone == noText {
			return api.Answer(chatCheck{Error: new("A phone is required")}, nil)
		}
		phone, err := person.Phone("phone", sent)
		if err != nil || phone == "" {
			return api.Answer(chatCheck{Phone: &sent, Error: new("This is not a telephone number")}, nil)
		}
		found, why, err := r.onChat(ctx, phone)
		c := chatCheck{Phone: &phone, IsValid: true, IsChat: found}
		if why != "" {
			c.Error = &why
		}
		return api.Answer(c, err)
	})
}

// onChat checks the caller's own messages, and then the lookup. why is the error text of a failed source.
func (r *Routes) onChat(ctx context.Context, phone string) (found bool, why string, err error) {
	if who := api.Caller(ctx); who.May(area, actor.Read) && who.Workspace != uuid.Nil {
		if found, err = r.Evidence.OnChat(ctx, api.At(ctx), who.Workspace, phone[1:]); err != nil || found {
			return found, "", err
		}
	}
	if r.Lookup == nil {
		return false, "Chat network lookup is not available", nil
	}
	if found, err = r.Lookup.OnChat(ctx, phone); err != nil {
		return false, "Chat network lookup failed", nil //nolint:nilerr // the response has the text
	}
	return found, "", nil
}
