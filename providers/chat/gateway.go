package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"bahi/domain/messaging/network"
)

// gateway is the aggregator in front of a chat network (CONTRACT.md 3.2).
type gateway struct {
	wire

	product string
}

// ours is the path in GATEWAY_BASE_URL. A channel's baseUrl may include it.
const ours = "/wa/api/v1"

// root returns the aggregator's address without a path.
func (gateway) root(a network.Account) string { return strings.TrimSuffix(a.BaseURL, ours) }

// send implements adapter. The aggregator responds with its own id, before the network receives the message.
func (n gateway) send(ctx context.Context, a network.Account, m network.Message) (string, *network.Failure) {
	if a.SenderID == "" && a.Channel != 0 || a.APIKey == "" {
		return "", &network.Failure{Reason: network.Unconfigured}
	}
	content := map[string]string{"type": "text", "text": m.Text}
	if m.Image != "" {
		content = map[string]string{"type": "image", "originalUrl": m.Image, "previewUrl": m.Image, "caption": m.Text}
	}
	form, path := url.Values{"channel": {n.product}, "destination": {m.To}, "src.name": {a.AppName}}, "/msg"
	if a.SenderID != "" { // without it, the aggregator identifies our phone by the key and the app
		form.Set("source", a.SenderID)
	}
	if t := m.Template; t != nil {
		values := []string{} // the aggregator requires them in order, without names
		for _, v := range t.Body {
			values = append(values, v.Text)
		}
		text, _ := json.Marshal(map[string]any{"id": t.ProviderID, "params": values}) //nolint:errchkjson // texts
		form.Set("template", string(text))
		path = "/template/msg"
		for place := range t.Extras {
			if file, is := media(t, place); is {
				text, _ = json.Marshal(file) //nolint:errchkjson // texts
				form.Set("message", string(text))
			}
		}
	} else {
		text, _ := json.Marshal(content) //nolint:errchkjson // texts
		form.Set("message", string(text))
	}
	c := call{
		method: http.MethodPost, url: n.root(a) + ours + path, secrets: []string{a.APIKey},
		header: http.Header{"Apikey": {a.APIKey}, "Content-Type": {formType}}, body: []byte(form.Encode()),
	}
	var sent struct {
		Status    string `json:"status"`
		MessageID string `json:"messageId"`
	}
	failed := n.ask(ctx, c, &sent, gatewayFailure)
	if failed == nil && sent.Status != "submitted" && sent.Status != "" {
		return "", &network.Failure{Reason: network.Refused}
	}
	return identified(sent.MessageID, failed)
}

// health implements adapter. The aggregator has no such call. It lists the templates of an app for the app's key. Without that list, the
// account's state shows only when a message is sent.
func (n gateway) health(ctx context.Context, a network.Account) (network.Health, *network.Failure) {
	if _, failed := n.list(ctx, a); failed != nil || a.AppName == "" {
		return network.Health{}, cmp.Or(failed, &network.Failure{Reason: network.HealthUnsupported})
	}
	return network.Health{Identity: "app:" + a.AppName}, nil
}

// templates implements lister.
func (n gateway) templates(ctx context.Context, a network.Account) ([]network.Template, *network.Failure) {
	all, failed := n.list(ctx, a)
	if failed != nil && failed.Reason == network.HealthUnsupported {
		return nil, nil
	}
	return all, failed
}

// list returns the text templates, which require no further field.
func (n gateway) list(ctx context.Context, a network.Account) (all []network.Template, failed *network.Failure) {
	if a.AppName == "" {
		return nil, nil
	}
	if a.APIKey == "" {
		return nil, &network.Failure{Reason: network.Unconfigured}
	}
	var said struct {
		Status    string `json:"status"`
		Templates []struct {
			ID       string `json:"id"`
			Name     string `json:"elementName"`
			Language string `json:"languageCode"`
			Category string `json:"category"`
			Status   string `json:"status"`
			Type     string `json:"templateType"`
			Body     string `json:"data"`
		} `json:"templates"`
	}
	c := call{
		method: http.MethodGet, url: n.root(a) + "/sm/api/v1/template/list/" + url.PathEscape(a.AppName), secrets: []string{a.APIKey},
		header: http.Header{"Apikey": {a.APIKey}},
	}
	switch failed = n.ask(ctx, c, &said, gatewayFailure); {
	case failed != nil && failed.Code == http.StatusNotFound:
		return nil, &network.Failure{Reason: network.HealthUnsupported}
	case failed == nil && said.Status != "success":
		return nil, &network.Failure{Reason: network.Refused}
	}
	for _, t := range said.Templates {
		kind := strings.ToUpper(t.Type)
		if t.ID == "" || t.Name == "" || kind != "TEXT" && kind != "IMAGE" && kind != "DOCUMENT" {
			continue
		}
		one := network.Template{ProviderID: t.ID, Name: t.Name, Language: t.Language, Category: t.Category, Status: strings.ToUpper(t.Status),
			Format: network.Positional}
		one.Read(t.Body)
		if kind != "TEXT" {
			one.Extras = []string{"header_" + strings.ToLower(kind)}
		}
		all = append(all, one)
	}
	return all, failed
}

// gatewayFailure reads {"status":"error","message":…}, if present.
func gatewayFailure(a answer) *network.Failure {
	var said struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Message == "" {
		return nil //nolint:nilerr // an unreadable response has no reason
	}
	switch {
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return a.failed(network.Credentials, a.status, said.Message, "")
	case a.status == http.StatusTooManyRequests:
		return a.failed(network.Throttled, a.status, said.Message, "")
	case a.status >= http.StatusInternalServerError:
		return nil // it has no codes that show whether it accepted the message
	default:
		return a.failed(network.Refused, a.status, said.Message, "")
	}
}
