package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"bahi/domain/messaging/network"
	"bahi/providers/lenient"
)

// cloud is the cloud wire format of a chat network (CONTRACT.md 3.1).
type cloud struct {
	wire

	product, limitField string
}

type cloudText struct {
	PreviewURL bool   `json:"preview_url"`
	Body       string `json:"body"`
}

type cloudImage struct {
	Link    string `json:"link"`
	Caption string `json:"caption,omitempty"`
}

type cloudMessage struct {
	Product   string       `json:"messaging_product"`
	Recipient string       `json:"recipient_type"`
	To        string       `json:"to,omitempty"`
	User      string       `json:"recipient,omitempty"` // the network's id, if there is no phone
	Type      string       `json:"type"`
	Text      *cloudText   `json:"text,omitempty"`
	Image     *cloudImage  `json:"image,omitempty"`
	Template  *cloudFilled `json:"template,omitempty"`
	Data      string       `json:"biz_opaque_callback_data"` // receipts repeat it
}

// send implements adapter.
func (n cloud) send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	body := cloudMessage{Product: n.product, Recipient: "individual", To: m.To, Type: "text", Data: m.ID}
	if strings.Trim(m.To, "0123456789") != "" {
		body.To, body.User = "", m.To
	}
	switch {
	case m.Template != nil:
		body.Type, body.Template = "template", filled(m.Template)
	case m.Image != "":
		body.Type, body.Image = "image", &cloudImage{Link: m.Image, Caption: m.Text}
	default:
		body.Text = &cloudText{Body: m.Text}
	}
	var sent struct {
		Contacts lenient.List[struct {
			ID lenient.Text `json:"wa_id"`
		}] `json:"contacts"`
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	if a.SenderID == "" || a.APIKey == "" {
		return "", &network.Failure{Reason: network.Unconfigured}
	}
	failed := n.ask(ctx, jsonCall(http.MethodPost, a.BaseURL+"/"+a.SenderID+"/messages", a.APIKey, body), &sent, cloudFailure)
	id := ""
	if len(sent.Messages) > 0 {
		id = sent.Messages[0].ID
	}
	if len(sent.Contacts) == 1 && m.As != nil {
		*m.As = string(sent.Contacts[0].Value.ID)
	}
	return identified(id, failed)
}

// health implements adapter.
func (n cloud) health(ctx context.Context, a network.Account) (h network.Health, failed *network.Failure) {
	if a.SenderID == "" || a.APIKey == "" {
		return h, &network.Failure{Reason: network.Unconfigured}
	}
	fields := url.Values{"fields": {"display_phone_number,verified_name,status,quality_rating,name_status,throughput," + n.limitField +
		",health_status"}}
	var said map[string]json.RawMessage
	if failed := n.ask(ctx, jsonCall(http.MethodGet, a.BaseURL+"/"+a.SenderID+"?"+fields.Encode(), a.APIKey, nil), &said,
		cloudFailure); failed != nil {
		return h, failed
	}
	text := func(name string) (value string) {
		_ = json.Unmarshal(said[name], &value) // other types are not shown
		return answer{}.words(value)
	}
	var status struct {
		CanSend string `json:"can_send_message"`
	}
	_ = json.Unmarshal(said["health_status"], &status) // as above
	return network.Health{
		Identity: a.SenderID, PhoneNumber: text("display_phone_number"), Quality: strings.ToLower(text("quality_rating")),
		MessagingLimit: text(n.limitField), CanSend: strings.ToLower(answer{}.words(status.CanSend)),
	}, nil
}

// cloudReasons are the meanings of the network's codes (CONTRACT.md 3.1.3, 0.9, N12). An unknown code is a refusal.
var cloudReasons = func() map[int]network.Reason {
	all := map[int]network.Reason{}
	for reason, codes := range map[network.Reason][]int{
		network.Credentials:  {0, 3, 10, 190},
		network.Restricted:   {368, 131031, 131037, 131042, 131045, 131057, 131063, 131064},
		network.Throttled:    {4, 80007, 130429, 131048, network.PairLimit, 133016},
		network.WindowClosed: {131047},
		network.Recipient: {130472, 130497, 131005, 131008, 131009, 131021, 131026, 131030, 131049, 131050, 131051, 131052, 131053,
			131062, 137000},
		network.Temporary: {1, 2, 131000, 131016},
	} {
		for _, code := range codes {
			all[code] = reason
		}
	}
	for code := 200; code < 300; code++ {
		all[code] = network.Credentials
	}
	for code := 132000; code < 133000; code++ {
		all[code] = network.Content
	}
	all[132015], all[132016] = network.Suspended, network.Suspended
	return all
}()

// Reported returns the failure for the code in a receipt of the network; 0 means that the receipt has none.
func Reported(code int) *network.Failure {
	if code == 0 {
		return &network.Failure{Reason: network.Refused}
	}
	return &network.Failure{Reason: cmp.Or(cloudReasons[code], network.Refused), Code: code}
}

// pairPause is the number of seconds before the next message to the same person (CONTRACT.md 3.1.3).
const pairPause = 6

// cloudFailure reads the error envelope. The code decides, not the HTTP status.
func cloudFailure(a answer) *network.Failure {
	var envelope struct {
		Error *struct {
			Message string  `json:"message"`
			Code    *number `json:"code"`
			Data    struct {
				Details string `json:"details"`
			} `json:"error_data"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &envelope) != nil || envelope.Error == nil || envelope.Error.Code == nil {
		return nil //nolint:nilerr // an unreadable response has no reason
	}
	code := int(*envelope.Error.Code)
	f := a.failed(cmp.Or(cloudReasons[code], network.Refused), code, envelope.Error.Message, envelope.Error.Data.Details)
	if code == network.PairLimit {
		f.After = wait(pairPause)
	}
	return f
}
