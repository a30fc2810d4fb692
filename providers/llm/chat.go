package llm

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// Role says whose words a message has.
type Role string

// The roles of a talk.
const (
	System    Role = "system"    // our rules; never anybody else's words
	User      Role = "user"      // data, see [Quoted]
	Assistant Role = "assistant" // an earlier answer
	ToolSays  Role = "tool"      // the result of a call
)

// Message is a message of a talk.
type Message struct {
	Role   Role
	Text   string
	Images []Image    // of a user
	Calls  []ToolCall // of an assistant
	CallID string     // of the call whose result it is
}

// Image is a picture for a model, see [Picture].
type Image struct {
	Type string // image/jpeg
	Data []byte
}

// Tool is a function that a model may ask for.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema of an object
}

// ToolCall is a function that a model asks for. The caller MUST check name and arguments.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object; nil: the model sent none
}

// Answer is what a model said.
type Answer struct {
	Text   string
	Calls  []ToolCall // to be made before the next message, in any order or at once
	Tokens int64      // that the server counted; 0: it did not say
}

// Chat asks for the next step of a talk: a text, or calls of tools. It returns [ErrNoModel], an [*Error], or the context's error.
func (c *Client) Chat(ctx context.Context, messages []Message, tools []Tool) (Answer, error) {
	if !c.Chats() {
		return Answer{}, ErrNoModel
	}
	p := openai.ChatCompletionNewParams{Model: c.config.Model}
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
		var schema shared.FunctionParameters
		if err := json.Unmarshal(t.Parameters, &schema); err != nil {
			return Answer{}, err
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: param.NewOpt(t.Description), Parameters: schema,
		}))
	}
	return c.complete(ctx, p)
}

// param returns the message as it is sent.
func (m Message) param() openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case System:
		return openai.SystemMessage(m.Text)
	case ToolSays:
		return openai.ToolMessage(m.Text, m.CallID)
	case Assistant:
		said := openai.ChatCompletionAssistantMessageParam{}
		if m.Text != "" {
			said.Content.OfString = param.NewOpt(m.Text)
		}
		for _, call := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: call.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: call.Name, Arguments: cmp.Or(string(call.Arguments), "{}"),
				},
			}})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: &said}
	case User:
	}
	if len(m.Images) == 0 {
		return openai.UserMessage(m.Text)
	}
	parts := []openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(m.Text)}
	for _, i := range m.Images {
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
			URL: "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data),
		}))
	}
	return openai.UserMessage(parts)
}

// callID returns the id of a call, which some servers leave out.
func callID(id string, place int) string {
	return cmp.Or(id, "call_"+strconv.Itoa(place))
}
