package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"bahi/commands/messagingcmd"
	"bahi/eventstore/signal"
)

// people creates a sales channel, contacts, and a list of contacts who opted in to offers.
func (f *filler) people(ctx context.Context) (err error) {
	if f.channel, err = f.create(ctx, "/api/channels", map[string]any{"name": "Sales", "type": "chat"}); err != nil {
		return err
	}
	if f.list, err = f.create(ctx, "/api/contact-lists", map[string]any{"name": "Offers"}); err != nil {
		return err
	}
	f.contacts = make([]int64, f.plan.of(contacts))
	for i := range f.contacts {
		f.later(1, func(ctx context.Context) (err error) {
			random := f.random("contact", i)
			first, last := person(random)
			f.contacts[i], err = f.create(ctx, "/api/contacts", map[string]any{"name": first + " " + last, "phone": phone(4, i)})
			if err != nil || i%2 == 1 {
				return err
			}
			change := map[string]any{"optIn": true}
			if i < offered {
				change["listIds"] = []int64{f.list}
			}
			return f.send(ctx, "PATCH", fmt.Sprintf("/api/contacts/%d", f.contacts[i]), change, nil)
		})
	}
	return f.do(ctx)
}

// offered limits the list: all its contacts have a smaller number.
const offered = 2000

// bot creates a channel, and a bot that replies on it from an uploaded file.
func (f *filler) bot(ctx context.Context) (err error) {
	if f.asked, err = f.create(ctx, "/api/channels", map[string]any{"name": "Questions", "type": "chat"}); err != nil {
		return err
	}
	id, err := f.create(ctx, "/api/bots", map[string]any{
		"name": "Asha", "description": "Answers questions of customers about the showroom", "systemPrompt": "You are polite and brief.",
		"channelIds": []int64{f.asked},
	})
	if err != nil {
		return err
	}
	files := fmt.Sprintf("/api/bots/%d/files", id)
	if err := f.upload(ctx, files, "faq.txt", faq); err != nil {
		return err
	}
	return until(ctx, "the bot has not read its file, and cannot answer", func() (ready bool, err error) {
		var kept []struct{ Status, Error string }
		err = f.call(ctx, "GET", files, "", &kept)
		for _, file := range kept {
			ready = ready || file.Status == "ready"
			if file.Status == "failed" {
				err = fmt.Errorf("the bot could not read its file: %s", file.Error)
			}
		}
		return ready, err
	})
}

// until calls look until look reports the end or fails. After two minutes it returns an error that begins with the text otherwise.
func until(ctx context.Context, otherwise string, look func() (bool, error)) error {
	for range 600 {
		if ended, err := look(); ended || err != nil {
			return err
		}
		if err := signal.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New(otherwise + "; see /ops/jobs for the reason")
}

// conversations receives messages of contacts, sends replies to some, and marks them read.
func (f *filler) conversations(ctx context.Context) error {
	for i := range f.plan.of(messages) {
		f.later(1, func(ctx context.Context) error {
			random := f.random("message", i)
			n := random.IntN(len(f.contacts))
			channel := f.channel
			if i < few && i%2 == 0 {
				channel = f.asked
			}
			_, err := f.sys.Messages.Receive(ctx, messagingcmd.InboundMessage{
				Sender: messagingcmd.Sender{From: phone(4, n)}, Channel: channel, Text: pick(random, asks), ProviderID: fmt.Sprintf("demo-%d", i),
				SentAt: time.Now(),
			})
			return err
		})
	}
	if err := f.do(ctx); err != nil {
		return err
	}
	head, err := f.sys.Store.Head(ctx) // replies depend on the tables
	if err == nil {
		err = f.call(ctx, "GET", "/api/contacts?limit=1", "", nil, "Bahi-Min-Position", strconv.FormatUint(uint64(head), 10))
	}
	if err != nil {
		return err
	}
	for _, answer := range []func(ctx context.Context, with string, i int) error{
		func(ctx context.Context, with string, i int) error {
			return f.send(ctx, "POST", with+"messages", map[string]any{"channelId": f.channel, "text": pick(f.random("answer", i), answers)}, nil)
		},
		func(ctx context.Context, with string, _ int) error { // after all replies, because it waits for the tables
			return f.call(ctx, "POST", with+"read", "{}", nil)
		},
	} {
		for i := few; i < f.plan.of(messages); i += 3 {
			f.later(0, func(ctx context.Context) error {
				return answer(ctx, fmt.Sprintf("/api/contacts/%d/", f.contacts[f.random("message", i).IntN(len(f.contacts))]), i)
			})
		}
		if err := f.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// campaign sends an offer to the list.
func (f *filler) campaign(ctx context.Context) error {
	template, err := f.template(ctx, "order_ready")
	if err != nil {
		return err
	}
	id, err := f.create(ctx, "/api/campaigns", map[string]any{
		"name": "Before Diwali", "type": "broadcast", "templateId": template, "audience": f.list,
		"templateParams": map[string]string{"1": "of this year", "2": "{{name}}"},
	})
	if err != nil {
		return err
	}
	return f.send(ctx, "POST", "/api/campaigns/send", map[string]any{"campaignId": id}, nil)
}
