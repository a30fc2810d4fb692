package bot

import (
	"slices"

	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/fault"
)

// The tools of the registry (CONTRACT.md G29).
const (
	KnowledgeSearch int64 = iota + 1
	CatalogSearch
	CreateEnquiry
	OrderStatus
	HandoffToHuman
	CurrentDatetime
)

// Tool is a function that a bot may call.
type Tool struct {
	ID          int64
	Name        string
	Description string
	Area        actor.Area // area in which attaching the tool requires Level; empty: it requires only the right to edit the bot
	Level       actor.Level
}

// Tools is the registry.
var Tools = []Tool{
	{ID: KnowledgeSearch, Name: "knowledge_search", Description: "Search the bot's files and pages once more"},
	{ID: CatalogSearch, Name: "catalog_search", Description: "Search products of this company", Area: actor.Marketplace, Level: actor.Read},
	{ID: CreateEnquiry, Name: "create_enquiry", Description: "Send the company an enquiry in the customer's name", Area: actor.Marketplace,
		Level: actor.Write},
	{ID: OrderStatus, Name: "order_status", Description: "Tell the status of the orders that the customer sent from this phone",
		Area: actor.Ledger, Level: actor.Read},
	{ID: HandoffToHuman, Name: "handoff_to_human", Description: "Hand the conversation over to a person"},
	{ID: CurrentDatetime, Name: "current_datetime", Description: "Tell the date and time at the company"},
}

// ToolOf returns a tool of the registry, by its id.
func ToolOf(id int64) (Tool, bool) {
	i := slices.IndexFunc(Tools, func(t Tool) bool { return t.ID == id })
	if i < 0 {
		return Tool{}, false
	}
	return Tools[i], true
}

// errRights reports a tool for which the caller lacks the rights.
var errRights = fault.New(fault.Forbidden, "Not enough permissions for this tool")

// AttachTool attaches a tool to a bot.
type AttachTool struct {
	Tool int64       `json:"toolId" doc:"ID of a tool of the registry: see GET with available=true"`
	By   actor.Actor `json:"-"`
}

// Decide returns no events for an attached tool.
func (c AttachTool) Decide(s State) ([]event.Event[State], error) {
	tool, known := ToolOf(c.Tool)
	switch {
	case s.Name == "":
		return nil, ErrNotFound
	case !known:
		return nil, fault.Wrong("toolId", "there is no such tool")
	case tool.Area != "" && !c.By.May(tool.Area, tool.Level):
		return nil, errRights
	case slices.Contains(s.Tools, c.Tool):
		return nil, nil
	}
	return []event.Event[State]{ToolAttached{Tool: c.Tool}}, nil
}

// RemoveTool removes a tool from a bot.
type RemoveTool struct{ Tool int64 }

// Decide refuses a tool that is not attached.
func (c RemoveTool) Decide(s State) ([]event.Event[State], error) {
	switch {
	case s.Name == "":
		return nil, ErrNotFound
	case !slices.Contains(s.Tools, c.Tool):
		return nil, ErrToolNotFound
	}
	return []event.Event[State]{ToolRemoved(c)}, nil
}
