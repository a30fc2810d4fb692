// Package bot is an automatic participant in conversations: it replies to customers on its channels.
package bot

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/patch"
	"bahi/domain/wording"
)

// Kind registers the events of streams bot-<number>. Stored names are permanent.
var Kind = event.NewKind("bot",
	event.Of[Created]("BotCreated", 1),
	event.Of[Edited]("BotEdited", 1),
	event.Of[ToolAttached]("BotToolAttached", 1),
	event.Of[ToolRemoved]("BotToolRemoved", 1),
	event.Of[Deleted]("BotDeleted", 1),
)

// Subjects are the bots. A bot's key seals the secrets of its webhooks and is destroyed with the bot.
const Subjects event.SubjectType = "bot"

// Errors that commands return. Callers without access to the record receive them too.
var (
	ErrNotFound     = fault.New(fault.NotFound, "Bot not found")
	ErrToolNotFound = fault.New(fault.NotFound, "Tool not found")
)

// State is the state that decisions and responses require.
type State struct {
	Name        string // empty: the bot does not exist
	Description string
	Prompt      string // the system prompt
	Color       string
	Fallback    string // text sent without a reply; empty: a default text in the customer's language
	Active      bool
	Channels    []int64 // may contain deleted channels
	Tools       []int64
	Owner       string // id of the user who created the bot; empty: an API key created it
}

// Created records a new bot.
type Created struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Prompt      string  `json:"system_prompt"`
	Color       string  `json:"color_theme"`
	Fallback    string  `json:"fallback_message,omitempty"`
	Active      bool    `json:"active"`
	Channels    []int64 `json:"channel_ids,omitempty"`
	Owner       string  `json:"owner,omitempty"`
}

// Edited records the changed fields.
type Edited struct {
	Name        patch.Field[string]  `json:"name,omitzero"`
	Description patch.Field[string]  `json:"description,omitzero"`
	Prompt      patch.Field[string]  `json:"system_prompt,omitzero"`
	Color       patch.Field[string]  `json:"color_theme,omitzero"`
	Fallback    patch.Field[string]  `json:"fallback_message,omitzero"`
	Active      patch.Field[bool]    `json:"active,omitzero"`
	Channels    patch.Field[[]int64] `json:"channel_ids,omitzero"`
}

// ToolAttached records that the bot may use a tool of the registry.
type ToolAttached struct {
	Tool int64 `json:"tool"`
}

// ToolRemoved records that the bot may no longer use a tool.
type ToolRemoved struct {
	Tool int64 `json:"tool"`
}

// Deleted records the deletion of the bot with its files, pages and webhooks. The secrets of the webhooks are erased.
type Deleted struct{}

// Evolve creates the bot.
func (e Created) Evolve(State) State {
	return State{
		Name: e.Name, Description: e.Description, Prompt: e.Prompt, Color: e.Color, Fallback: e.Fallback, Active: e.Active, Channels: e.Channels,
		Owner: e.Owner,
	}
}

// Evolve sets the changed fields.
func (e Edited) Evolve(s State) State {
	s.Name, s.Description, s.Prompt = e.Name.Or(s.Name), e.Description.Or(s.Description), e.Prompt.Or(s.Prompt)
	s.Color, s.Fallback, s.Active, s.Channels = e.Color.Or(s.Color), e.Fallback.Or(s.Fallback), e.Active.Or(s.Active),
		e.Channels.Or(s.Channels)
	return s
}

// Evolve adds the tool.
func (e ToolAttached) Evolve(s State) State {
	s.Tools = append(slices.Clone(s.Tools), e.Tool)
	slices.Sort(s.Tools)
	return s
}

// Evolve removes the tool.
func (e ToolRemoved) Evolve(s State) State {
	s.Tools = slices.DeleteFunc(slices.Clone(s.Tools), func(tool int64) bool { return tool == e.Tool })
	return s
}

// Evolve removes the bot.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger]. No table has the secrets.
func (Deleted) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Subjects.Of(id), Unlisted: true}
}

// blue is the default color of a bot.
const blue = "blue"

// The limits of texts in characters (SPEC, CONTRACT.md D19).
const (
	minName, maxName               = 3, 100
	minDescription, maxDescription = 10, 5000
	maxPrompt                      = 20000
	maxFallback                    = 1000
)

// sized returns a check of a text's length.
func sized(field string, least, most int) func(string) (string, error) {
	return func(text string) (string, error) {
		text, err := wording.Normalise(field, text, most)
		if err == nil && utf8.RuneCountInString(text) < least {
			err = fault.Wrong(field, fmt.Sprintf("%d to %d characters", least, most))
		}
		return text, err
	}
}

var (
	named     = sized("name", minName, maxName)
	described = sized("description", minDescription, maxDescription)
	prompted  = sized("systemPrompt", 1, maxPrompt)
	fallback  = sized("fallbackMessage", 0, maxFallback)
)

// Create creates a bot.
type Create struct {
	Name        string               `json:"name"         maxLength:"400" doc:"Name of the bot, 3 to 100 characters"`
	Description string               `json:"description"  maxLength:"6000" doc:"Description of the bot, 10 to 5000 characters"`
	Prompt      string               `json:"systemPrompt" maxLength:"24000" doc:"Instructions for the model, 1 to 20000 characters"`
	Color       patch.Field[string]  `json:"colorTheme,omitzero" enum:"blue,indigo,purple,green,red,orange,yellow" doc:"Color; absent: blue"`
	Active      patch.Field[bool]    `json:"active,omitzero" doc:"true: the bot replies; absent: true"`
	Fallback    patch.Field[string]  `json:"fallbackMessage,omitzero" maxLength:"1200" doc:"Text sent at a hand-over; absent: a default text in the customer's language"`
	Channels    patch.Field[[]int64] `json:"channelIds,omitzero" nullable:"false" maxItems:"100" doc:"Channels on which the bot replies"`

	Owner string `json:"-"`
}

// Decide normalises the values.
func (c Create) Decide(State) ([]event.Event[State], error) {
	e := Created{Color: blue, Active: c.Active.State != patch.Given || c.Active.Value, Channels: distinct(c.Channels.Value), Owner: c.Owner}
	if c.Color.State == patch.Given {
		e.Color = c.Color.Value
	}
	var wrong [4]error
	e.Name, wrong[0] = named(c.Name)
	e.Description, wrong[1] = described(c.Description)
	e.Prompt, wrong[2] = prompted(c.Prompt)
	e.Fallback, wrong[3] = fallback(c.Fallback.Value)
	if err := fault.Join(wrong[:]...); err != nil {
		return nil, err
	}
	return []event.Event[State]{e}, nil
}

// distinct returns the ids sorted and without duplicates.
func distinct(ids []int64) []int64 { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// Edit changes the fields of a bot that it contains.
type Edit struct {
	Name        patch.Field[string]  `json:"name,omitzero"         nullable:"false" maxLength:"400" doc:"Name of the bot"`
	Description patch.Field[string]  `json:"description,omitzero"  nullable:"false" maxLength:"6000" doc:"Description of the bot"`
	Prompt      patch.Field[string]  `json:"systemPrompt,omitzero" nullable:"false" maxLength:"24000" doc:"Instructions for the model"`
	Color       patch.Field[string]  `json:"colorTheme,omitzero"   nullable:"false" enum:"blue,indigo,purple,green,red,orange,yellow" doc:"Color of the widget"`
	Active      patch.Field[bool]    `json:"active,omitzero"       nullable:"false" doc:"true: the bot replies"`
	Fallback    patch.Field[string]  `json:"fallbackMessage,omitzero" maxLength:"1200" doc:"Text sent at a hand-over; null: a default text in the customer's language"`
	Channels    patch.Field[[]int64] `json:"channelIds,omitzero" nullable:"false" maxItems:"100" doc:"All channels on which the bot replies"`
}

// Decide records the fields that change.
func (c Edit) Decide(s State) ([]event.Event[State], error) {
	if s.Name == "" {
		return nil, ErrNotFound
	}
	e := Edited{Color: patch.Differing(c.Color, s.Color), Active: patch.Differing(c.Active, s.Active)}
	var wrong [4]error
	e.Name, wrong[0] = c.Name.With(named)
	e.Description, wrong[1] = c.Description.With(described)
	e.Prompt, wrong[2] = c.Prompt.With(prompted)
	e.Fallback, wrong[3] = c.Fallback.With(fallback)
	if err := fault.Join(wrong[:]...); err != nil {
		return nil, err
	}
	e.Name, e.Description = patch.Differing(e.Name, s.Name), patch.Differing(e.Description, s.Description)
	e.Prompt, e.Fallback = patch.Differing(e.Prompt, s.Prompt), patch.Differing(e.Fallback, s.Fallback)
	if channels := distinct(c.Channels.Or(s.Channels)); !slices.Equal(channels, s.Channels) {
		e.Channels = patch.Clear[[]int64]()
		if len(channels) > 0 {
			e.Channels = patch.Set(channels)
		}
	}
	if !e.Name.Present() && !e.Description.Present() && !e.Prompt.Present() && !e.Color.Present() && !e.Fallback.Present() &&
		!e.Active.Present() && !e.Channels.Present() {
		return nil, nil
	}
	return []event.Event[State]{e}, nil
}

// Delete deletes a bot.
type Delete struct{}

// Decide returns an error if the bot does not exist.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Name == "" {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}
