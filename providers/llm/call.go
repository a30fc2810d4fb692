package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"bahi/providers/breaker"
)

// errLeft is the error of a call that its caller cancelled. It is not a fault of the server.
var errLeft = errors.New("the caller left")

// post makes a call and returns the response's body.
func (c *Client) post(ctx context.Context, path string, asked any) ([]byte, error) {
	body, err := c.breaker.Execute(func() ([]byte, error) {
		status, body, err := c.send(ctx, path, asked)
		if ctx.Err() != nil {
			return nil, errors.Join(errLeft, ctx.Err())
		}
		return body, c.failure(status, body, err)
	})
	if breaker.IsOpen(err) {
		return nil, &Error{Reason: "was not called, because it failed too often", Down: true}
	}
	return body, err
}

// said matches error codes of servers that Bahi may report.
var said = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,64}$`)

// failure returns the error of a call. It drops HTTP's error, which may quote the address or the key. Status 0 means that there was no
// response.
func (c *Client) failure(status int, body []byte, err error) error {
	switch {
	case status == 0:
		return &Error{Reason: "did not respond", Down: true}
	case status >= http.StatusMultipleChoices:
		e := &Error{Reason: "refused", Status: status, Down: status >= http.StatusInternalServerError || status == http.StatusTooManyRequests}
		var reply struct {
			Error struct{ Code, Param any }
		}
		_ = json.Unmarshal(body, &reply) // even if the body is unreadable, the status counts
		e.Code, e.Param = c.word(reply.Error.Code), c.word(reply.Error.Param)
		return e
	case err != nil:
		return &Error{Reason: "ended its response early, or sent too much", Status: status, Down: true}
	default:
		return nil
	}
}

func (c *Client) word(value any) string {
	text, _ := value.(string)
	if !said.MatchString(text) || c.config.Key != "" && strings.Contains(text, c.config.Key) {
		return ""
	}
	return text
}

// completion is a response of the protocol in the forms that servers send: with null or parts for a text, and with objects for the
// arguments of tools.
type completion struct {
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content   json.RawMessage `json:"content"`
			Refusal   string          `json:"refusal"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Total json.Number `json:"total_tokens"`
	} `json:"usage"`
}

// complete requests a completion. From a refusal it learns which parameters the model accepts.
func (c *Client) complete(ctx context.Context, p completionRequest) (answer Answer, err error) {
	for {
		h := c.habitsOf(p.Model)
		p.Temperature, p.MaxTokens, p.NewMaxTokens = new(0.0), c.config.MaxTokens, 0
		if h.noTemperature {
			p.Temperature = nil
		}
		if h.newTokens {
			p.MaxTokens, p.NewMaxTokens = 0, c.config.MaxTokens
		}
		body, err := c.post(ctx, "chat/completions", p)
		if err == nil {
			return answered(body)
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest || !c.teach(p.Model, e.Param, h) {
			return Answer{}, err
		}
	}
}

// teach records a parameter that a model's server refuses, and reports whether that is new.
func (c *Client) teach(model, refused string, before habits) bool {
	after := before
	switch refused {
	case "temperature":
		after.noTemperature = true
	case "max_tokens":
		after.newTokens = true
	}
	c.note(model, func(h *habits) {
		h.noTemperature, h.newTokens = h.noTemperature || after.noTemperature, h.newTokens || after.newTokens
	})
	return after != before
}

func (c *Client) habitsOf(model string) habits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.learn[model]
}

func (c *Client) note(model string, change func(*habits)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.learn[model]
	change(&h)
	c.learn[model] = h
}

// answered reads a completion. It returns an error for a truncated answer, a refusal and an empty answer.
func answered(body []byte) (a Answer, err error) {
	var read completion
	if err := json.Unmarshal(body, &read); err != nil || len(read.Choices) == 0 {
		return a, &Error{Reason: "sent an unreadable response", Down: true}
	}
	first := read.Choices[0]
	a.Text = textOf(first.Message.Content)
	for i, call := range first.Message.ToolCalls {
		a.Calls = append(a.Calls, ToolCall{ID: callID(call.ID, i), Name: call.Function.Name, Arguments: argumentsOf(call.Function.Arguments)})
	}
	tokens, _ := read.Usage.Total.Int64() // servers may omit it
	a.Tokens = max(tokens, 0)
	switch {
	case first.Message.Refusal != "" || first.FinishReason == "content_filter":
		return Answer{}, &Error{Reason: "refused to answer"}
	case first.FinishReason == "length":
		return Answer{}, &Error{Reason: "truncated its answer"}
	case strings.TrimSpace(a.Text) == "" && len(a.Calls) == 0:
		return Answer{}, &Error{Reason: "sent an empty answer"}
	case len(a.Text) > maxText:
		return Answer{}, &Error{Reason: "sent an answer that is too long"}
	}
	return a, nil
}

// textOf returns the text of a content: a string, or the texts of its parts.
func textOf(content json.RawMessage) (text string) {
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // anything else has no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// argumentsOf returns the JSON object of a call's arguments. The protocol has a string, some servers an object; nil: it is neither.
func argumentsOf(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(strings.TrimSpace(text))
	}
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return nil
	}
	return slices.Clone(raw)
}
