package chat

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"bahi/domain/messaging/network"
)

// lister is an adapter of a network with templates.
type lister interface {
	templates(ctx context.Context, a network.Account) ([]network.Template, *network.Failure)
}

// Templates lists the templates of an account, none for a network without them. Its error is a [*network.Failure].
func (n *Networks) Templates(ctx context.Context, a network.Account) ([]network.Template, error) {
	via, a := n.of(a)
	has, ok := via.(lister)
	if !ok {
		return nil, nil
	}
	all, failed := has.templates(ctx, a)
	if failed != nil {
		return nil, failed
	}
	return all, nil
}

// maxPages limits the pages of a list of templates, which have at most 100 each.
const maxPages = 20

type cloudTemplate struct {
	ID         string           `json:"id"`
	Name       string           `json:"name"`
	Status     string           `json:"status"`
	Category   string           `json:"category"`
	Language   string           `json:"language"`
	Format     string           `json:"parameter_format"`
	Components []cloudComponent `json:"components"`
}

type cloudComponent struct {
	Type    string `json:"type"`
	Format  string `json:"format"`
	Text    string `json:"text"`
	Buttons []struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	} `json:"buttons"`
}

// templates implements lister. It lists all statuses, because a paused template still exists. It never follows the address of a next page,
// which would receive our token.
func (n cloud) templates(ctx context.Context, a network.Account) (all []network.Template, _ *network.Failure) {
	if a.AccountID == "" || a.APIKey == "" {
		return nil, &network.Failure{Reason: network.Unconfigured}
	}
	query := url.Values{"limit": {"100"}}
	for range maxPages {
		var page struct {
			Data   []cloudTemplate `json:"data"`
			Paging struct {
				Next    string `json:"next"`
				Cursors struct {
					After string `json:"after"`
				} `json:"cursors"`
			} `json:"paging"`
		}
		at := a.BaseURL + "/" + a.AccountID + "/message_templates?" + query.Encode()
		if failed := n.ask(ctx, jsonCall(http.MethodGet, at, a.APIKey, nil), &page, cloudFailure); failed != nil {
			return nil, failed
		}
		for _, t := range page.Data {
			if t.ID != "" && t.Name != "" {
				all = append(all, t.read())
			}
		}
		if page.Paging.Next == "" || page.Paging.Cursors.After == "" {
			break
		}
		query.Set("after", page.Paging.Cursors.After)
	}
	return all, nil
}

// read converts a template to [network.Template].
func (t cloudTemplate) read() network.Template {
	out := network.Template{ProviderID: t.ID, Name: t.Name, Language: t.Language, Category: t.Category, Status: strings.ToUpper(t.Status),
		Format: network.Positional}
	if strings.EqualFold(t.Format, network.Named) {
		out.Format = network.Named
	}
	for _, c := range t.Components {
		switch strings.ToUpper(c.Type) {
		case "BODY":
			out.Read(c.Text)
		case "HEADER":
			if c.Format == "IMAGE" || c.Format == "DOCUMENT" {
				out.Extras = append(out.Extras, "header_"+strings.ToLower(c.Format))
			} else if network.HasPlace(c.Text) {
				out.Extras = append(out.Extras, "header")
			}
		case "BUTTONS":
			for i, b := range c.Buttons {
				if b.Type == "URL" && network.HasPlace(b.URL) {
					out.Extras = append(out.Extras, "button_"+strconv.Itoa(i))
				}
			}
		}
	}
	return out
}

type cloudFilled struct {
	Name       string            `json:"name"`
	Language   map[string]string `json:"language"`
	Components []filledPart      `json:"components,omitempty"`
}

type filledPart struct {
	Type       string        `json:"type"`
	SubType    string        `json:"sub_type,omitempty"`
	Index      string        `json:"index,omitempty"`
	Parameters []filledValue `json:"parameters"`
}

type filledValue struct {
	Type     string         `json:"type"`
	Name     string         `json:"parameter_name,omitempty"`
	Text     string         `json:"text,omitempty"`
	Image    *cloudImage    `json:"image,omitempty"`
	Document *cloudDocument `json:"document,omitempty"`
}

type cloudDocument struct {
	Link     string `json:"link"`
	Filename string `json:"filename"`
}

// media returns the value of a template's header if the header is a file, otherwise false. A template's document is always a PDF. The
// contact sees the file's name in the address, or else the template's name.
func media(f *network.Filled, place string) (v filledValue, is bool) {
	switch link := f.Extras[place]; place {
	case "header_image":
		return filledValue{Type: "image", Image: &cloudImage{Link: link}}, true
	case "header_document":
		name := path.Base(link)
		if path.Ext(name) != ".pdf" {
			name = f.Name + ".pdf"
		}
		return filledValue{Type: "document", Document: &cloudDocument{Link: link, Filename: name}}, true
	}
	return v, false
}

// filled returns a template with its values in the cloud wire format (CONTRACT.md 3.1.1).
func filled(f *network.Filled) *cloudFilled {
	out := &cloudFilled{Name: f.Name, Language: map[string]string{"code": f.Language}}
	for _, place := range slices.Sorted(maps.Keys(f.Extras)) {
		value := filledValue{Type: "text", Text: f.Extras[place]}
		part := filledPart{Type: "header"}
		if v, is := media(f, place); is {
			value = v
		} else if index, is := network.Button(place); is {
			part = filledPart{Type: "button", SubType: "url", Index: index}
		}
		part.Parameters = []filledValue{value}
		out.Components = append(out.Components, part)
	}
	body := filledPart{Type: "body"}
	for _, v := range f.Body {
		value := filledValue{Type: "text", Text: v.Text}
		if f.Named {
			value.Name = v.Name
		}
		body.Parameters = append(body.Parameters, value)
	}
	if len(body.Parameters) > 0 {
		out.Components = append(out.Components, body)
	}
	return out
}

// sandboxTemplates are the templates of every sandbox channel (CONTRACT.md N6).
var sandboxTemplates = func() (all []network.Template) {
	for _, t := range []cloudTemplate{
		{Name: "order_ready", Language: "en", Category: "UTILITY",
			Components: []cloudComponent{{Type: "BODY", Text: "Order {{1}} is ready for {{2}}"}}},
		{Name: "balance", Language: "en", Category: "UTILITY", Format: network.Named,
			Components: []cloudComponent{{Type: "HEADER", Format: "DOCUMENT"}, {Type: "BODY", Text: "{{name}}, your account as of {{as_of}}: " +
				"{{cash}}; {{fine}}. Statement: {{link}} Reply 1 if you agree, 2 if not."}}},
		{Name: "offer", Language: "hi", Category: "MARKETING", Format: network.Named,
			Components: []cloudComponent{{Type: "BODY", Text: "नमस्ते {{customer}}, {{item}} पर {{discount}} की छूट"}}},
		{Name: "plain", Language: "en", Category: "UTILITY",
			Components: []cloudComponent{{Type: "BODY", Text: "We are open again. Do come by."}}},
	} {
		t.ID, t.Status = "sandbox."+t.Name, cmp.Or(t.Status, "APPROVED")
		all = append(all, t.read())
	}
	return all
}()

// templates implements lister.
func (*Sandbox) templates(_ context.Context, a network.Account) ([]network.Template, *network.Failure) { //nolint:unparam // others fail
	if a.Type != "chat" {
		return nil, nil
	}
	return sandboxTemplates, nil
}
