// Package botwebhook is an endpoint of the company that a bot may call. The bot's key seals the values of the webhook's headers, query,
// body and fixed parameters, and the secret that signs the calls.
package botwebhook

import (
	"encoding/json"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
)

// Kind registers the events of streams botwebhook-<number>. Stored names are permanent.
var Kind = event.NewKind("botwebhook",
	event.Of[Created]("BotWebhookCreated", 1),
	event.Of[Edited]("BotWebhookEdited", 1),
).Sealing("bot")

// bots are the data subjects. Their keys seal the secrets.
const bots event.SubjectType = "bot"

// ErrNotFound reports an unknown webhook. Callers without access to the webhook receive it too.
var ErrNotFound = fault.New(fault.NotFound, "Webhook not found")

// Stars are returned in place of a secret. A client sends them to keep the secret.
const Stars = "********"

// State is the state that decisions and responses require. Its secrets are sealed.
type State struct {
	Call

	Bot     int64 // 0: the webhook does not exist
	Active  bool
	Signing event.Secret
}

// Call is the configuration of a webhook.
type Call struct {
	Name        string      `json:"name"`
	URL         string      `json:"url"`
	Method      string      `json:"method"`
	Description string      `json:"description"`
	Headers     []Header    `json:"headers,omitempty"`
	Query       []Header    `json:"query_params,omitempty"`
	JSON        []Header    `json:"json_data,omitempty"` // members of an object, with their values as JSON
	Parameters  []Parameter `json:"parameters,omitempty"`
}

// Header is a header of each call, or another constant value.
type Header struct {
	Name  string       `json:"name"`
	Value event.Secret `json:"value"`
}

// Parameter is a value of a call that the bot sets, or a constant value.
type Parameter struct {
	Name     string       `json:"name"`
	DataType string       `json:"data_type"`
	Place    string       `json:"place"` // query_param, post_data or path_param
	Source   string       `json:"source"`
	Value    event.Secret `json:"value,omitzero"` // value of a fixed parameter
}

// The values of a parameter's fields.
const (
	ByAI  = "by_ai"
	Fixed = "fixed"

	InQuery = "query_param"
	inBody  = "post_data"
	InPath  = "path_param"

	String   = "string"
	Number   = "number"
	Date     = "date"
	Datetime = "datetime"
)

// Created records a new webhook.
type Created struct {
	Call

	Bot     int64        `json:"bot"`
	Active  bool         `json:"active"`
	Signing event.Secret `json:"signing_secret"`
}

// Edited records the changed fields.
type Edited struct {
	Name        patch.Field[string]      `json:"name,omitzero"`
	URL         patch.Field[string]      `json:"url,omitzero"`
	Method      patch.Field[string]      `json:"method,omitzero"`
	Description patch.Field[string]      `json:"description,omitzero"`
	Headers     patch.Field[[]Header]    `json:"headers,omitzero"`
	Query       patch.Field[[]Header]    `json:"query_params,omitzero"`
	JSON        patch.Field[[]Header]    `json:"json_data,omitzero"`
	Parameters  patch.Field[[]Parameter] `json:"parameters,omitzero"`
	Active      patch.Field[bool]        `json:"active,omitzero"`
}

// Evolve creates the webhook.
func (e Created) Evolve(State) State {
	return State{Call: e.Call, Bot: e.Bot, Active: e.Active, Signing: e.Signing}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Name, s.URL, s.Method, s.Description = e.Name.Or(s.Name), e.URL.Or(s.URL), e.Method.Or(s.Method), e.Description.Or(s.Description)
	s.Headers, s.Query, s.JSON, s.Parameters = e.Headers.Or(s.Headers), e.Query.Or(s.Query), e.JSON.Or(s.JSON), e.Parameters.Or(s.Parameters)
	s.Active = e.Active.Or(s.Active)
	return s
}

// Given is a parameter as sent by a client.
type Given struct {
	Name     string              `json:"name"     maxLength:"64" doc:"Name of the parameter"`
	DataType string              `json:"dataType" enum:"string,number,date,datetime" doc:"Type of the value"`
	Place    string              `json:"type"     enum:"query_param,post_data,path_param" doc:"Place of the parameter"`
	Source   string              `json:"source"   enum:"by_ai,fixed" doc:"by_ai: the bot sets the value"`
	Value    patch.Field[string] `json:"value,omitzero" maxLength:"2000" doc:"Value of a fixed parameter; never shown again"`
}

// Input has the optional parts of a webhook's body. Null removes all entries.
type Input struct {
	Headers    patch.Field[map[string]string]          `json:"headers,omitzero"     nullable:"true" doc:"Headers by name; their values are never shown again"`
	Query      patch.Field[map[string]string]          `json:"queryParams,omitzero" nullable:"true" doc:"Query parameters by name; their values are never shown again"`
	JSON       patch.Field[map[string]json.RawMessage] `json:"jsonData,omitzero"    nullable:"true" doc:"Body of a call, a JSON object; its values are never shown again"`
	Parameters patch.Field[[]Given]                    `json:"parameters,omitzero"  nullable:"true" maxItems:"50" doc:"Parameters"`
}

// Create creates a webhook.
type Create struct {
	Input

	Name        string            `json:"name"        maxLength:"400" doc:"Name of the webhook"`
	URL         string            `json:"url"         maxLength:"3000" doc:"URL that the bot calls"`
	Method      string            `json:"method"      enum:"GET,POST,PUT,PATCH,DELETE" doc:"HTTP method"`
	Description string            `json:"description" maxLength:"6000" doc:"Description for the language model"`
	Active      patch.Field[bool] `json:"active,omitzero" doc:"true: the bot may call the webhook; absent: true"`

	Bot    int64  `json:"-"`
	Secret string `json:"-"` // signs the calls
}

// Decide normalises the values.
func (c Create) Decide(State) ([]event.Event[State], error) {
	call, err := c.apply(c.Bot, Call{}, change{
		Name: patch.Set(c.Name), URL: patch.Set(c.URL), Method: patch.Set(c.Method), Description: patch.Set(c.Description),
	})
	if err != nil {
		return nil, err
	}
	return []event.Event[State]{Created{
		Call: call, Bot: c.Bot, Active: c.Active.State != patch.Given || c.Active.Value, Signing: secret(c.Bot, c.Secret),
	}}, nil
}

// Edit changes the fields of a webhook that it contains.
type Edit struct {
	Input

	Name        patch.Field[string] `json:"name,omitzero"        nullable:"false" maxLength:"400" doc:"Name of the webhook"`
	URL         patch.Field[string] `json:"url,omitzero"         nullable:"false" maxLength:"3000" doc:"URL that the bot calls"`
	Method      patch.Field[string] `json:"method,omitzero"      nullable:"false" enum:"GET,POST,PUT,PATCH,DELETE" doc:"HTTP method"`
	Description patch.Field[string] `json:"description,omitzero" nullable:"false" maxLength:"6000" doc:"Description for the language model"`
	Active      patch.Field[bool]   `json:"active,omitzero"      nullable:"false" doc:"false: switched off"`

	Bot int64 `json:"-"`
}

// Decide records the fields that change. Sealed secrets cannot be compared, so a given secret counts as changed.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Bot == 0 || s.Bot != c.Bot {
		return nil, ErrNotFound
	}
	call, err := c.apply(c.Bot, s.Call, change{Name: c.Name, URL: c.URL, Method: c.Method, Description: c.Description})
	if err != nil {
		return nil, err
	}
	e := Edited{
		Name: differing(call.Name, s.Name), URL: differing(call.URL, s.URL), Method: differing(call.Method, s.Method),
		Description: differing(call.Description, s.Description), Active: patch.Differing(c.Active, s.Active),
	}
	if c.Headers.Present() && len(call.Headers)+len(s.Headers) > 0 {
		e.Headers = filled(call.Headers, len(call.Headers))
	}
	if c.Parameters.Present() && len(call.Parameters)+len(s.Parameters) > 0 {
		e.Parameters = filled(call.Parameters, len(call.Parameters))
	}
	if c.Query.Present() && len(call.Query)+len(s.Query) > 0 {
		e.Query = filled(call.Query, len(call.Query))
	}
	if c.JSON.Present() && len(call.JSON)+len(s.JSON) > 0 {
		e.JSON = filled(call.JSON, len(call.JSON))
	}
	if !e.Name.Present() && !e.URL.Present() && !e.Method.Present() && !e.Description.Present() && !e.JSON.Present() && !e.Active.Present() &&
		!e.Headers.Present() && !e.Parameters.Present() && !e.Query.Present() {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// filled returns a field with a list, or null if the list is empty.
func filled[T any](list T, entries int) patch.Field[T] {
	if entries == 0 {
		return patch.Clear[T]()
	}
	return patch.Set(list)
}
