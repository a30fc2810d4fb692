package bot_test

import (
	"strings"
	"testing"

	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/messaging/bot"
	"bahi/domain/patch"
	"bahi/internal/test/eventtest"
)

var made = bot.Created{Name: "Asha", Description: "Answers questions", Prompt: "Be polite.", Color: "blue", Active: true,
	Channels: []int64{3, 7}, Owner: "u1"}

func TestCreate(t *testing.T) {
	t.Parallel()
	none := eventtest.Given(t, bot.Kind)
	none.Case("values are put in order, null is the default").When(bot.Create{
		Name: " Asha ", Description: " Answers questions", Prompt: "Be polite.\n", Color: patch.Clear[string](), Active: patch.Clear[bool](),
		Channels: patch.Set([]int64{7, 3, 7}), Owner: "u1",
	}).Then(made)
	none.Case("all that is wrong is told").When(bot.Create{Name: "ab ", Description: "too short", Prompt: " ",
		Fallback: patch.Set(strings.Repeat("x", 1001))}).ThenFails(fault.Fields(
		fault.Field{Field: "name", Message: "3 to 100 characters"},
		fault.Field{Field: "description", Message: "10 to 5000 characters"},
		fault.Field{Field: "systemPrompt", Message: "1 to 20000 characters"},
		fault.Field{Field: "fallbackMessage", Message: "at most 1000 characters"},
	))
}

func TestEdit(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bot.Kind, made)
	given.Case("nothing").When(bot.Edit{}).ThenNothing()
	given.Case("what it has already").When(bot.Edit{Name: patch.Set("Asha"), Active: patch.Set(true), Channels: patch.Set([]int64{7, 3}),
		Fallback: patch.Clear[string]()}).ThenNothing()
	given.Case("what is named alone").When(bot.Edit{Active: patch.Set(false), Fallback: patch.Set("Later"), Channels: patch.Clear[[]int64]()}).
		Then(bot.Edited{Active: patch.Set(false), Fallback: patch.Set("Later"), Channels: patch.Clear[[]int64]()})
	given.Case("a name is not taken away").When(bot.Edit{Name: patch.Set("  ")}).ThenFails(fault.Fields(fault.Field{Field: "name",
		Message: "3 to 100 characters"}))
	given.And(bot.Deleted{}).Case("a deleted one").When(bot.Edit{}).ThenFails(bot.ErrNotFound)
}

func TestTools(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, bot.Kind, made)
	clerk := actor.Actor{Permissions: actor.Permissions{Messaging: actor.Write, Marketplace: actor.Read}}
	given.Case("a tool within the caller's rights").When(bot.AttachTool{Tool: bot.CatalogSearch, By: clerk}).Then(bot.ToolAttached{Tool: 2})
	given.And(bot.ToolAttached{Tool: 2}).Case("once").When(bot.AttachTool{Tool: 2, By: clerk}).ThenNothing()
	given.Case("no tool that may more than the caller").When(bot.AttachTool{Tool: bot.CreateEnquiry, By: clerk}).
		ThenFails(fault.New(fault.Forbidden, "Not enough permissions for this tool"))
	given.Case("no unknown tool").When(bot.AttachTool{Tool: 7,
		By: clerk}).ThenFails(fault.Fields(fault.Field{Field: "toolId", Message: "there is no such tool"}))
	given.And(bot.ToolAttached{Tool: 6},
		bot.ToolAttached{Tool: 2}).Case("it is taken away").When(bot.RemoveTool{Tool: 6}).Then(bot.ToolRemoved{Tool: 6})
	given.Case("what is not attached").When(bot.RemoveTool{Tool: 6}).ThenFails(bot.ErrToolNotFound)
}
