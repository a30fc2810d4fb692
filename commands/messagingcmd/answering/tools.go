package answering

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/marketplacecmd"
	"bahi/domain/fault"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botanswer"
	"bahi/domain/messaging/botwebhook"
	"bahi/domain/patch"
	"bahi/domain/wording"
	"bahi/providers/llm"
)

const (
	maxDescription = 1024 // maximum characters of a description for a model
	maxName        = 64
	maxQuery       = 500
)

// hook is a webhook that the model may call.
type hook struct {
	botwebhook.State

	id   int64
	name string
}

// The parameter schemas of tools: with a query, without parameters, with a reason.
var (
	queried = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{"query":{"type":"string"}}}`)
	unasked = json.RawMessage(`{"type":"object","additionalProperties":false,"required":[],"properties":{}}`)
	because = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["reason"],"properties":{"reason":{"type":"string"}}}`)
)

var enquired = json.RawMessage(
	`{"type":"object","additionalProperties":false,"required":["name","email","phone","message"],"properties":{` +
		`"name":{"type":"string"},"email":{"type":"string"},"phone":{"type":"string"},"message":{"type":"string"}}}`)

var parameters = map[int64]json.RawMessage{
	bot.KnowledgeSearch: queried, bot.CatalogSearch: queried, bot.OrderStatus: unasked, bot.CreateEnquiry: enquired,
	bot.HandoffToHuman: because, bot.CurrentDatetime: unasked,
}

// tools returns the functions that the model may call: active webhooks, and attached registry tools for which the caller has the rights.
func (t *talk) tools(ctx context.Context) (all []llm.Tool, err error) {
	companies, err := t.Views.Companies(ctx, t.AsOf, t.Request.Workspace)
	if err != nil {
		return nil, err
	}
	if len(companies) > 0 {
		t.company = companies[0]
	}
	for _, tool := range bot.Tools {
		schema := parameters[tool.ID]
		if tool.ID == bot.CreateEnquiry && t.company == uuid.Nil {
			continue
		}
		if slices.Contains(t.State.Tools, tool.ID) && t.may(tool) {
			all = append(all, llm.Tool{Name: tool.Name, Description: tool.Description, Parameters: schema})
		}
	}
	ids, err := t.Views.Webhooks(ctx, t.AsOf, t.Request.Workspace, t.Bot)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		l, err := commands.Load(ctx, t.Commands.Fresh(), botwebhook.Kind, strconv.FormatInt(id, 10))
		if err != nil {
			return nil, err
		}
		if l.State.Bot != t.Bot || !l.State.Active {
			continue
		}
		h := hook{State: l.State, id: id, name: functionName(id, l.State.Name)}
		t.hooks = append(t.hooks, h)
		all = append(all, llm.Tool{Name: h.name, Description: shortened(h.Description, maxDescription), Parameters: h.schema()})
	}
	return all, nil
}

// may reports whether the caller of a trial has the rights of the tool. In a conversation the bot has the rights of its
// creator.
func (t *talk) may(tool bot.Tool) bool {
	return !t.Trial || tool.Area == "" || t.Request.Actor.May(tool.Area, tool.Level)
}

func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// functionName returns the name of a webhook for a model: wh_<id>_<its name in ASCII>.
func functionName(id int64, name string) string {
	words := strings.FieldsFunc(wording.Romanised(name),
		func(c rune) bool { return c >= utf8.RuneSelf || !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return strings.TrimRight(shortened("wh_"+strconv.FormatInt(id, 10)+"_"+strings.ToLower(strings.Join(words, "_")), maxName), "_")
}

// schema returns the schema of the parameters that the bot sets.
func (h hook) schema() json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, p := range h.Parameters {
		if p.Source != botwebhook.ByAI {
			continue
		}
		property := map[string]any{"type": "string"}
		switch p.DataType {
		case botwebhook.Number:
			property["type"] = "number"
		case botwebhook.Date:
			property["format"] = "date"
		case botwebhook.Datetime:
			property["format"] = "date-time"
		}
		properties[p.Name], required = property, append(required, p.Name)
	}
	//nolint:errchkjson // texts
	text, _ := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "required": required, "properties": properties})
	return text
}

// call makes a call that the model requests. It returns the call's result, or the call's failure in the same form. Its error reports a
// fault of the system.
func (t *talk) call(ctx context.Context, asked llm.ToolCall) (result string, err error) {
	arguments := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(asked.Arguments))
	d.UseNumber()
	unread := len(asked.Arguments) > 0 && d.Decode(&arguments) != nil
	done := ToolResult{Name: asked.Name, Arguments: asked.Arguments}
	if !json.Valid(done.Arguments) {
		done.Arguments = json.RawMessage("null")
	}
	defer func() {
		done.Result = result
		t.calls = append(t.calls, done)
	}()
	if unread {
		return failed("the arguments are no JSON object"), nil
	}
	if i := slices.IndexFunc(t.hooks, func(h hook) bool { return h.name == asked.Name }); i >= 0 {
		values, wrong := t.hooks[i].values(arguments)
		if wrong != "" {
			return failed(wrong), nil
		}
		if t.Trial && !t.Calls {
			done.Simulated = true
			return `{"status":200,"body":"simulated"}`, nil
		}
		return t.webhook(ctx, t.hooks[i], values)
	}
	i := slices.IndexFunc(bot.Tools, func(tool bot.Tool) bool { return tool.Name == asked.Name })
	if i < 0 || !slices.Contains(t.State.Tools, bot.Tools[i].ID) || !t.may(bot.Tools[i]) {
		return failed(errNoSuchTool.Error()), nil
	}
	if id := bot.Tools[i].ID; t.Trial && (id == bot.HandoffToHuman || id == bot.CreateEnquiry) {
		done.Simulated = true
	}
	return t.logged(ctx, botanswer.CallBegan{Kind: "tool", Name: asked.Name}, func() (string, botanswer.CallEnded, error) {
		result, err := t.tool(ctx, bot.Tools[i].ID, arguments)
		return result, botanswer.CallEnded{}, err
	})
}

// logged makes a call, and records its start and its result. A trial records only calls with effects on others.
func (t *talk) logged(ctx context.Context, began botanswer.CallBegan, do func() (string, botanswer.CallEnded, error)) (string, error) {
	if began.Call == "" {
		began.Call = uuid.NewString()
	}
	began.Bot, began.Contact = t.Bot, t.Contact
	noted := !t.Trial || began.Webhook != 0
	if noted {
		if err := t.note(ctx, began); err != nil {
			return "", err
		}
	}
	at := t.Commands.Now()
	result, ended, err := do()
	if err != nil {
		return "", err
	}
	ended.Call, ended.Duration = began.Call, t.Commands.Now().Sub(at).Milliseconds()
	if noted {
		err = t.note(context.WithoutCancel(ctx), ended)
	}
	return result, err
}

// tool calls a tool of the registry.
func (t *talk) tool(ctx context.Context, id int64, arguments map[string]any) (string, error) {
	text := func(name string) string {
		value, _ := arguments[name].(string)
		return shortened(strings.TrimSpace(value), maxQuery)
	}
	var found any
	var err error
	switch id {
	case bot.KnowledgeSearch:
		from := len(t.found) + 1
		fresh, err := t.search(ctx, text("query"))
		if err != nil {
			return "", err
		}
		if len(fresh) == 0 {
			return "no further passages", nil
		}
		return numbered(from, fresh), nil
	case bot.CatalogSearch:
		found, err = t.Views.Products(ctx, t.AsOf, t.Request.Workspace, shortened(text("query"), 200))
	case bot.OrderStatus:
		found = "not found"
		if t.Phone != "" {
			found, err = t.Views.Orders(ctx, t.Request.Workspace, t.Phone)
		}
	case bot.CreateEnquiry:
		found, err = t.enquire(ctx, arguments)
	case bot.HandoffToHuman:
		t.handover, t.why = true, "the bot handed over"
		found = "handed over: a person will answer"
	case bot.CurrentDatetime:
		now := t.Commands.Now().In(t.Zone)
		found = map[string]string{"now": now.Format(time.RFC3339), "weekday": now.Weekday().String(), "zone": t.Zone.String()}
	}
	if err != nil {
		return "", err
	}
	result, err := json.Marshal(found)
	return shortened(string(result), maxResult), err
}

// enquire sends an enquiry to the workspace's company in the customer's name. Faults and missing values are returned to
// the model.
func (t *talk) enquire(ctx context.Context, arguments map[string]any) (any, error) {
	given, missing := map[string]string{}, []string{}
	for _, name := range []string{"name", "email", "phone", "message"} {
		switch value := arguments[name].(type) {
		case string:
			given[name] = strings.TrimSpace(value)
		case json.Number: // some models send a phone as a number
			given[name] = value.String()
		}
		if given[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return map[string]string{"error": "the enquiry was not sent. Ask the customer for: " + strings.Join(missing, ", ")}, nil
	}
	if t.Trial {
		return "the enquiry was sent", nil
	}
	if t.enquired {
		return map[string]string{"error": "this enquiry was not sent: the reply has already sent one. Another enquiry requires " +
			"another message of the customer"}, nil
	}
	req := t.by()
	req.Key, req.Operation = t.Answer, "bot-enquiry" // a reply sends one enquiry, even with retries
	_, err := marketplacecmd.SendEnquiry(ctx, t.Commands, req, enquiry.Send{
		To: t.company, Name: given["name"], Email: given["email"], Phone: patch.Set(given["phone"]), Message: patch.Set(given["message"]),
		Source: patch.Set("bot"),
	})
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Unavailable {
		return map[string]any{"error": refused.Detail, "fields": refused.Fields}, nil
	}
	t.enquired = err == nil
	return "the enquiry was sent", err
}

// failed returns an error in the form for the model.
func failed(why string) string {
	text, _ := json.Marshal(map[string]string{"error": why}) //nolint:errchkjson // a text
	return string(text)
}

// values returns the values of a call that the bot sets, or their fault.
func (h hook) values(arguments map[string]any) (values map[string]any, wrong string) {
	values = map[string]any{}
	for _, p := range h.Parameters {
		if p.Source != botwebhook.ByAI {
			continue
		}
		given, there := arguments[p.Name]
		if !there {
			return nil, fmt.Sprintf("%s is required", p.Name)
		}
		value, err := botwebhook.Coerce(p.DataType, given)
		if err != nil {
			return nil, fmt.Sprintf("%s: %s", p.Name, err)
		}
		if text := fmt.Sprint(value); p.Place == botwebhook.InPath && (text == "" || text == "." || text == "..") {
			return nil, fmt.Sprintf("%s: not a part of a path", p.Name)
		}
		values[p.Name] = value
	}
	return values, ""
}
