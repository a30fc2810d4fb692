package console

import (
	"context"
	"strconv"
	"time"

	"bahi/commands"
	"bahi/commands/messaging/answering"
	"bahi/domain/actor"
	"bahi/domain/messaging/bot"
	"bahi/readmodels"
	views "bahi/readmodels/messaging"
)

// Trials let people try bots.
type Trials interface {
	Try(ctx context.Context, req commands.Request, bot int64, text string, calls bool) (answering.Result, error)
}

func (c *Console) botRoutes() {
	c.show("GET /bots", (*visit).botList)
	c.show("GET /bots/{id}", (*visit).botPage)
	c.show("POST /bots/{id}", (*visit).tryBot) // it changes nothing, so there is nowhere to redirect to
}

// botList is the content of the list of bots.
type botList struct {
	Rows  []views.Bot
	Total int64
	Pages pages
}

func (v *visit) botList() (page, error) {
	if err := v.may(actor.Read); err != nil {
		return page{}, err
	}
	n := number(v.r.URL.Query().Get("page"))
	rows, total, err := v.inbox.Views.Bots(v.r.Context(), v.who.Workspace, readmodels.Page{Number: n, Size: pageSize}, views.BotFilter{})
	b := botList{Rows: rows, Total: total, Pages: v.pagesOf(n, pageSize, total)}
	b.Pages.Link = v.path + "/bots?page="
	return page{template: "bots", title: "Bots", body: b}, err
}

// trial is the content of the page on which a bot is tried.
type trial struct {
	Bot      views.Bot
	MayTry   bool
	Text     string
	Calls    bool // webhooks are called
	Tried    bool
	Said     answering.Result
	Duration time.Duration
}

func (v *visit) botPage() (page, error) {
	b, err := v.botOf()
	return page{template: "bot", title: b.Bot.Name, body: b}, err
}

// botOf returns the bot of the path.
func (v *visit) botOf() (b trial, err error) {
	if err := v.may(actor.Read); err != nil {
		return b, err
	}
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return b, bot.ErrNotFound
	}
	b.MayTry = v.may(actor.Write) == nil
	b.Bot, err = v.inbox.Views.Bot(v.r.Context(), v.who.Workspace, id)
	return b, err
}

// tryBot asks the bot, and shows what it would say and why.
func (v *visit) tryBot() (page, error) {
	b, err := v.botOf()
	if err == nil {
		err = v.may(actor.Write)
	}
	if err != nil {
		return page{}, err
	}
	b.Tried, b.Text, b.Calls = true, v.r.PostFormValue("text"), v.r.PostFormValue("calls") == "on"
	began := v.Now()
	b.Said, err = v.inbox.Bots.Try(v.r.Context(), v.request(), b.Bot.ID, b.Text, b.Calls)
	b.Duration = v.Now().Sub(began).Round(time.Millisecond)
	return page{template: "bot", title: b.Bot.Name, body: b}, err
}
