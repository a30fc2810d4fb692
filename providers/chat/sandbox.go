package chat

import (
	"context"
	"strings"

	"bahi/domain/messaging/network"
)

// Sandbox accepts every message and sends none. It cannot reach a phone or name that ends in 000 (CONTRACT.md N6).
type Sandbox struct{}

const unreachable = "000"

// send implements adapter.
func (*Sandbox) send(_ context.Context, _ network.Account, m network.Message) (string, *network.Failure) {
	if strings.HasSuffix(m.To, unreachable) {
		return "", &network.Failure{Reason: network.Recipient, Code: 131026, Title: "Message undeliverable",
			Details: "The sandbox reaches nobody whose phone ends in 000"}
	}
	return "sandbox." + m.ID, nil
}

// health implements adapter.
func (*Sandbox) health(context.Context, network.Account) (network.Health, *network.Failure) {
	return network.Health{Quality: "green", MessagingLimit: "TIER_1K", CanSend: "available"}, nil
}
