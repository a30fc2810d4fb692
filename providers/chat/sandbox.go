package chat

import (
	"context"
	"strings"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
)

// Sandbox takes every message and sends none. It cannot reach those whose phone or name ends in 000 (CONTRACT.md N6).
type Sandbox struct{}

const unreachable = "000"

// send implements adapter.
func (*Sandbox) send(_ context.Context, _ network.Account, m network.Message) (string, *network.Failure) {
	if strings.HasSuffix(m.To, unreachable) {
		return "", &network.Failure{Reason: network.Recipient, Code: 131026, Title: "Message undeliverable", Details: "The sandbox reaches nobody whose phone ends in 000"}
	}
	return "sandbox." + m.ID, nil
}

// health implements adapter.
func (*Sandbox) health(_ context.Context, a network.Account) (network.Health, *network.Failure) {
	h := network.Health{Quality: "green", MessagingLimit: "TIER_1K", CanSend: "available"}
	switch a.Type {
	case channel.Chat:
		if h.Identity = a.SenderID; a.Dialect != "" && a.Dialect != "cloud" && a.AppName != "" { // an aggregator knows apps
			h.Identity = "app:" + a.AppName
		}
	case channel.Telegram: // a bot's token begins with the bot's id
		if id, _, found := strings.Cut(a.APIKey, ":"); found {
			h.Identity = id
		}
	}
	return h, nil
}
