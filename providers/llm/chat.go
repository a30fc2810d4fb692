package llm

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// Role is the author of a message.
type Role string

// The roles of a conversation.
const (
	System    Role = "system"    // our rules; never another author's text
	User      Role = "user"      // data, see [quoted]
	Assistant Role = "assistant" // an earlier answer
	ToolSays  Role = "tool"      // the result of a call
)

// Message is a message of a conversation.
type Message struct {
	Role   Role
	Text   string
	Images []Image    // a user's images
	Calls  []ToolCall // an assistant's calls
	CallID string     // id of the call whose result it is
}

// Image is a picture for a model, see [Picture].
type Image struct {
	Type string // image/jpeg
	Data []byte
}

// Tool is a function that a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema of an object
}

// ToolCall is a model's call of a function. The caller MUST check name and arguments.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object; nil: the model sent none
}

// Answer is a model's response.
type Answer struct {
	Text   string
	Calls  []ToolCall // to be executed before the next message, in any order or at once
	Tokens int64      // counted by the server; 0: not reported
}

// Chat requests the next step of a conversation: a text, or calls of tools. It returns [ErrNoModel], an [*Error], or the context's error.
func (c *Client) Chat(ctx context.Context, messages []Message, tools []Tool) (Answer, error) {
	if !c.Chats() {
		return Answer{}, ErrNoModel
	}
	p := completionRequest{Model: c.config.Model}
	for _, m := range messages {
		p.Messages = append(p.Messages, m.param())
		if len(m.Images) > 0 {
			p.Model = c.config.VisionModel
		}
	}
	if p.Model == "" {
		return Answer{}, ErrNoModel
	}
	for _, t := range tools {
		if !json.Valid(t.Parameters) {
			return Answer{}, fmt.Errorf("invalid JSON in the schema of tool %s", t.Name)
		}
		p.Tools = append(p.Tools, toolParam{"function", function{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	return c.complete(ctx, p)
}

// param returns the message in the protocol's form.
func (m Message) param() messageParam {
	sent := messageParam{Role: m.Role, Content: m.Text, CallID: m.CallID}
	for _, call := range m.Calls {
		sent.Calls = append(sent.Calls,
			callParam{call.ID, "function", function{Name: call.Name, Arguments: new(cmp.Or(string(call.Arguments), "{}"))}})
	}
	if m.Text == "" && len(m.Calls) > 0 {
		sent.Content = nil
	}
	if len(m.Images) > 0 {
		parts := []part{{Type: "text", Text: m.Text}}
		for _, i := range m.Images {
			parts = append(parts, part{Type: "image_url",
				ImageURL: &imageURL{"data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)}})
		}
		sent.Content = parts
	}
	return sent
}

// callID returns the id of a call, which some servers omit.
func callID(id string, place int) string {
	return cmp.Or(id, "call_"+strconv.Itoa(place))
}
