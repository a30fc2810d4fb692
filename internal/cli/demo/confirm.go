package demo

import (
	"context"
	"fmt"
	"time"

	"bahi/commands/messagingcmd"
)

// disputes is the number of clients that dispute their balances.
const disputes = 2

// confirm asks the clients to confirm their balances. Two clients dispute their balances.
func (f *filler) confirm(ctx context.Context) error {
	var clients []struct{ ID int64 }
	if err := f.call(ctx, "GET", "/clients", "", &clients); err != nil {
		return err
	}
	asked := min(len(clients), few, (len(f.contacts)+1)/2) // every second contact has opted in
	for i := range asked {
		err := f.send(ctx, "PUT", fmt.Sprintf("/books/accounts/%d/contact", clients[i].ID), map[string]any{"contactId": f.contacts[2*i]}, nil)
		if err != nil {
			return err
		}
	}
	template, err := f.template(ctx, "balance")
	if err != nil {
		return err
	}
	id, err := f.create(ctx, "/books/confirmations", map[string]any{
		"kind": "client", "as_of": min(f.plan.Until, f.sys.Books.Today()), "channelId": f.channel, "templateId": template,
	})
	if err != nil {
		return err
	}
	if err := f.sent(ctx, id); err != nil {
		return err
	}
	for i := range asked {
		text := "1"
		if i < disputes {
			text = "2"
		}
		_, err := f.sys.Messages.Receive(ctx, messagingcmd.InboundMessage{
			Sender: messagingcmd.Sender{From: phone(4, 2*i)}, Channel: f.channel, Text: text, ProviderID: fmt.Sprintf("demo-answer-%d", i),
			SentAt: time.Now(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sent waits until the messages of a confirmation are sent: a reply counts only after its request.
func (f *filler) sent(ctx context.Context, id int64) error {
	return until(ctx, "the messages of the confirmation are not sent", func() (bool, error) {
		var c struct {
			Counts struct{ Open int64 }
		}
		err := f.call(ctx, "GET", fmt.Sprintf("/books/confirmations/%d", id), "", &c)
		return c.Counts.Open == 0, err
	})
}

// template returns a template of the sales channel by its name.
func (f *filler) template(ctx context.Context, name string) (int64, error) {
	var templates []struct {
		ID   int64
		Name string
	}
	if err := f.call(ctx, "GET", fmt.Sprintf("/api/chat/templates?channelId=%d", f.channel), "", &templates); err != nil {
		return 0, err
	}
	for _, t := range templates {
		if t.Name == name {
			return t.ID, nil
		}
	}
	return 0, fmt.Errorf("the sandbox has no template %s", name)
}
