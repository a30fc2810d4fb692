package chat

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"bahi/domain/messaging/network"
)

// telegram is the Bot API (CONTRACT.md 0.7, 0.9).
type telegram struct{ wire }

// send implements adapter.
func (n telegram) send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	body, method := map[string]string{"chat_id": m.To, "text": m.Text}, "sendMessage"
	if m.Image != "" {
		body, method = map[string]string{"chat_id": m.To, "photo": m.Image, "caption": m.Text}, "sendPhoto"
	}
	var sent struct {
		Result struct {
			MessageID int64 `json:"message_id"`
		} `json:"result"`
	}
	if failed := n.bot(ctx, a, method, body, &sent); failed != nil {
		return "", failed
	}
	if sent.Result.MessageID == 0 {
		return identified("", nil)
	}
	return identified(m.To+":"+strconv.FormatInt(sent.Result.MessageID, 10), nil) // its ids are unique timeout a chat
}

// health implements adapter.
func (n telegram) health(ctx context.Context, a network.Account) (h network.Health, failed *network.Failure) {
	var me struct {
		Result struct {
			ID int64 `json:"id"`
		} `json:"result"`
	}
	if failed := n.bot(ctx, a, "getMe", nil, &me); failed != nil {
		return h, failed
	}
	if me.Result.ID == 0 {
		return h, &network.Failure{Reason: network.Unknown}
	}
	h = network.Health{Identity: strconv.FormatInt(me.Result.ID, 10), CanSend: "available"}
	return h, n.hook(ctx, a)
}

// hook registers our address for the bot's updates. A bot has one address, so this replaces an earlier one.
func (n telegram) hook(ctx context.Context, a network.Account) *network.Failure {
	switch {
	case a.Hook == nil:
		return nil
	case a.Hook.URL == "":
		return &network.Failure{Reason: network.Unhooked}
	}
	var now struct {
		Result struct {
			URL string `json:"url"`
		} `json:"result"`
	}
	if failed := n.bot(ctx, a, "getWebhookInfo", nil, &now); failed != nil || now.Result.URL == a.Hook.URL {
		return failed
	}
	return n.bot(ctx, a, "setWebhook", map[string]any{
		"url": a.Hook.URL, "secret_token": a.Hook.Token, "allowed_updates": []string{"message", "edited_message"},
	}, &struct{}{})
}

// bot calls a method of the bot. The address includes the token.
func (n telegram) bot(ctx context.Context, a network.Account, method string, body, into any) *network.Failure {
	if a.APIKey == "" || strings.ContainsAny(a.APIKey, "/?#%") {
		return &network.Failure{Reason: network.Unconfigured}
	}
	verb := http.MethodPost
	if body == nil {
		verb = http.MethodGet
	}
	c := jsonCall(verb, a.BaseURL+"/bot"+a.APIKey+"/"+method, "", body)
	c.secrets = []string{a.APIKey}
	return n.ask(ctx, c, into, telegramFailure)
}

// telegramFailure reads {"ok":false,"error_code","description","parameters":{"retry_after"}}.
func telegramFailure(a answer) *network.Failure {
	var said struct {
		Code        *number `json:"error_code"`
		Description string  `json:"description"`
		Parameters  struct {
			RetryAfter number `json:"retry_after"`
		} `json:"parameters"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Code == nil {
		return nil //nolint:nilerr // an unreadable response has no reason
	}
	code := int(*said.Code)
	reason := reasonOf(code)
	switch {
	case code == http.StatusNotFound: // the network knows no bot with this token
		reason = network.Credentials
	case code == http.StatusBadRequest && strings.Contains(said.Description, "chat not found"):
		reason = network.Recipient
	}
	f := a.failed(reason, code, said.Description, "")
	f.After = max(f.After, wait(int64(said.Parameters.RetryAfter)))
	return f
}
