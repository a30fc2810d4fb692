package messagingcmd

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/domain/messaging/message"
)

// DeliveryReceipt is a network's report about a message.
type DeliveryReceipt struct {
	message.Receipt

	Channel  int64
	IDs      []string // the network's and the aggregator's ids of the message
	Callback string   // Bahi's id of the message; empty: not reported
}

// ReceiptResult is the result of a [DeliveryReceipt].
type ReceiptResult struct {
	Known   bool   // false: the message is unknown, at least for now
	Subject string // data subject of the message's values
}

// ErrUnmatched reports a receipt for an unknown message. The message may still arrive.
var ErrUnmatched = errors.New("no message has the receipt's id yet")

// codeOptOut is the network's code for a person who has opted out of advertising (CONTRACT.md 0.9).
const codeOptOut = 131050

// receiptsTogether is the maximum number of receipts in one transaction: a body may have more than ten thousand.
const receiptsTogether = 500

// Receipts records delivery receipts. It groups them by channel, because networks send about a hundred at once.
func (f *Messages) Receipts(ctx context.Context, all []DeliveryReceipt) ([]ReceiptResult, error) {
	results, of := make([]ReceiptResult, len(all)), map[int64][]int{}
	for i, n := range all {
		of[n.Channel] = append(of[n.Channel], i)
	}
	for channel, places := range of {
		_, req, err := f.from(ctx, channel)
		if err != nil {
			return nil, err
		}
		for some := range slices.Chunk(places, receiptsTogether) {
			if err := f.receipts(ctx, req, all, some, results); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// receipts records the receipts of one channel's messages.
func (f *Messages) receipts(ctx context.Context, req commands.Request, all []DeliveryReceipt, places []int, results []ReceiptResult) error {
	numbers, err := f.numbers(ctx, req.Workspace, all, places)
	if err != nil {
		return err
	}
	var ones, later []commands.StreamCommand[message.State]
	together := map[string]bool{}
	for _, place := range places {
		n, id := all[place], strconv.FormatInt(numbers[place], 10)
		if numbers[place] == 0 {
			continue
		}
		l, err := commands.LoadCached(ctx, f.Commands, message.Kind, id, func(s message.State) bool { return s.ProviderID != "" })
		if err != nil {
			return err
		}
		if l.State.Channel != n.Channel || l.Workspace != req.Workspace {
			continue
		}
		results[place] = ReceiptResult{Known: true, Subject: l.State.Subject()}
		for _, other := range n.IDs {
			if other != l.State.ProviderID {
				n.NetworkID = other
			}
		}
		if l.State.ProviderID == "" && l.State.Status == message.Waiting && n.Callback == "" {
			n.NetworkID = ""
		}
		one := commands.StreamCommand[message.State]{Loaded: l, ID: id, Command: n.Receipt}
		switch follows, err := n.Receipt.Decide(l.State); {
		case err != nil:
			return err
		case together[id]: // the result depends on the message's previous receipt
			later = append(later, one)
		case len(follows) > 0: // a receipt without effect has none on a later state either
			together[id], ones = true, append(ones, one)
		}
		if err := f.OptedOut(ctx, req, l.State.Contact, n.Code); err != nil {
			return err
		}
	}
	if err := commands.HandleAll(ctx, f.Commands, req, message.Kind, ones); err != nil {
		return err
	}
	for _, one := range later {
		if _, err := commands.Handle(ctx, f.Commands, req, message.Kind, one.ID, one.Command); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the messages of receipts by index. Most messages were sent long before their receipts arrived, so the first query does
// not wait for recent events.
func (f *Messages) numbers(ctx context.Context, workspace uuid.UUID, all []DeliveryReceipt, places []int) (map[int]int64, error) {
	numbers := map[int]int64{}
	var unknown []int
	for _, place := range places {
		number, _ := strconv.ParseInt(strings.TrimPrefix(all[place].Callback, message.Name("")), 10, 64) // 0 for an id that is not Bahi's
		if numbers[place] = number; number == 0 {
			unknown = append(unknown, place)
		}
	}
	for _, read := range []func(context.Context, uuid.UUID, int64, []string) (map[string]int64, error){f.Known.MessagesAtHand,
		f.Known.MessagesNamed} {
		var ids []string
		for _, place := range unknown {
			ids = append(ids, all[place].IDs...)
		}
		if len(ids) == 0 {
			break
		}
		named, err := read(ctx, workspace, all[unknown[0]].Channel, ids)
		if err != nil {
			return nil, err
		}
		var still []int
		for _, place := range unknown {
			if numbers[place] = firstOf(named, all[place].IDs); numbers[place] == 0 {
				still = append(still, place)
			}
		}
		unknown = still
	}
	return numbers, nil
}

// firstOf returns the first message with one of a network's ids, or 0.
func firstOf(named map[string]int64, ids []string) (number int64) {
	for _, id := range ids {
		if n := named[id]; n != 0 && (number == 0 || n < number) {
			number = n
		}
	}
	return number
}
