// Package bot is an automatic partner of conversations: it answers customers on the channels that it is put on.
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

// Subjects are the bots: the secrets of a bot's webhooks are sealed with its key, which ends with the bot.
const Subjects event.SubjectType = "bot"

// The refusals, which also meet those who may not know that the record exists.
var (
	ErrNotFound     = fault.New(fault.NotFound, "Bot not found")
	ErrToolNotFound = fault.New(fault.NotFound, "Tool not found")
)

// State is what decisions and answers need.
type State struct {
	Name        string // empty: there is no bot
	Description string
	Prompt      string // the system prompt
	Color       string
	Fallback    string // what it says when it has no answer; empty: a line in the customer's language
	Active      bool
	Channels    []int64 // some may be deleted since
	Tools       []int64
	Owner       string // id of the user who made it; empty: an API key did
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

// Edited records a change of what it names.
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

// Deleted records that the bot is gone with its files, pages and webhooks. The secrets of the webhooks are to be forgotten.
type Deleted struct{}

// Evolve begins the bot.
func (e Created) Evolve(State) State {
	return State{
		Name: e.Name, Description: e.Description, Prompt: e.Prompt, Color: e.Color, Fallback: e.Fallback, Active: e.Active, Channels: e.Channels,
		Owner: e.Owner,
	}
}

// Evolve changes what is named.
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

// Evolve takes the tool away.
func (e ToolRemoved) Evolve(s State) State {
	s.Tools = slices.DeleteFunc(slices.Clone(s.Tools), func(tool int64) bool { return tool == e.Tool })
	return s
}

// Evolve ends it.
func (Deleted) Evolve(State) State { return State{} }

// Erases implements [event.ErasureTrigger]. No table has a secret.
func (Deleted) Erases(id string) event.Erasure {
	return event.Erasure{Subject: Subjects.Of(id), Unlisted: true}
}

// Blue is the color of a bot for which nobody chose one.
const Blue = "blue"

// The lengths of texts, in characters (SPEC, CONTRACT.md D19).
const (
	minName, maxName               = 3, 100
	minDescription, maxDescription = 10, 5000
	maxPrompt                      = 20000
	maxFallback                    = 1000
)

// sized returns a rule for a text of a length.
func sized(field string, least, most int) func(string) (string, error) {
	return func(text string) (string, error) {
		text, err := wording.Normalise(field, text, most)
		if err == nil && utf8.RuneCountInString(text) < least {
			err = fault.Fields(fault.Field{Field: field, Message: fmt.Sprintf("%d to %d characters", least, most)})
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

// Create makes a bot.
type Create struct {
	Name        string               `json:"name"         maxLength:"400" doc:"3 to 100 characters"`
	Description string               `json:"description"  maxLength:"6000" doc:"10 to 5000 characters"`
	Prompt      string               `json:"systemPrompt" maxLength:"24000" doc:"Who the bot is and how it speaks: 1 to 20000 characters"`
	Color       patch.Field[string]  `json:"colorTheme,omitzero" enum:"blue,indigo,purple,green,red,orange,yellow" doc:"blue by default"`
	Active      patch.Field[bool]    `json:"active,omitzero" doc:"It answers; true by default"`
	Fallback    patch.Field[string]  `json:"fallbackMessage,omitzero" maxLength:"1200" doc:"What it says when it hands over; by default a line in the customer's language"`
	Channels    patch.Field[[]int64] `json:"channelIds,omitzero" nullable:"true" maxItems:"100" doc:"Channels that it answers on"`

	Owner string `json:"-"`
}

// Decide puts the values in order.
func (c Create) Decide(State) ([]event.Event[State], error) {
	e := Created{Color: Blue, Active: c.Active.State != patch.Given || c.Active.Value, Channels: distinct(c.Channels.Value), Owner: c.Owner}
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

// distinct returns ids in their order, each once.
func distinct(ids []int64) []int64 { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// Edit changes what it names of a bot.
type Edit struct {
	Name        patch.Field[string]  `json:"name,omitzero"         nullable:"false" maxLength:"400" doc:"Name of the bot"`
	Description patch.Field[string]  `json:"description,omitzero"  nullable:"false" maxLength:"6000" doc:"Description of the bot"`
	Prompt      patch.Field[string]  `json:"systemPrompt,omitzero" nullable:"false" maxLength:"24000" doc:"Instructions for the model"`
	Color       patch.Field[string]  `json:"colorTheme,omitzero"   nullable:"false" enum:"blue,indigo,purple,green,red,orange,yellow" doc:"Colours"`
	Active      patch.Field[bool]    `json:"active,omitzero"       nullable:"false" doc:"false: switched off"`
	Fallback    patch.Field[string]  `json:"fallbackMessage,omitzero" maxLength:"1200" doc:"null: a line in the customer's language"`
	Channels    patch.Field[[]int64] `json:"channelIds,omitzero" nullable:"true" maxItems:"100" doc:"All channels it answers on from now on"`
}

// Decide changes what is named and differs.
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

// Delete ends a bot.
type Delete struct{}

// Decide refuses a bot that is not there.
func (Delete) Decide(s State) ([]event.Event[State], error) {
	if s.Name == "" {
		return nil, ErrNotFound
	}
	return []event.Event[State]{Deleted{}}, nil
}
