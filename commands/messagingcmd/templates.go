package messagingcmd

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/event"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
)

// listed returns the ids of a channel's known templates by the network's ids.
type listed interface {
	TemplateIDs(ctx context.Context, workspace uuid.UUID, channel int64) (map[string]int64, error)
}

// Templates stores the networks' reports about the templates of channels.
type Templates struct {
	*Channels

	Listed listed

	asking singleflight.Group
	mu     sync.Mutex
	asked  map[int64]asked // by channel
}

// asked is the time of this process's last list of a channel. Other processes have their own.
type asked struct {
	at       time.Time
	settings channel.State // state of the channel at that time
}

// askTemplatesInterval is the lifetime of a list. Some networks allow one request an hour (CONTRACT.md 3.1.5).
const askTemplatesInterval = time.Hour

// Refresh requests the templates of a workspace's channels from their networks unless it has done so recently. It returns late if a request
// failed, so that a list is stale. If no channel has a list, it returns an error for the client.
func (f *Templates) Refresh(ctx context.Context, workspace uuid.UUID, channels []int64) (late bool, err error) {
	each := make([]refreshed, len(channels))
	var asking errgroup.Group
	asking.SetLimit(maxConcurrent)
	for i, id := range channels {
		asking.Go(func() (err error) {
			each[i], err = f.refresh(ctx, workspace, id)
			return err
		})
	}
	err = asking.Wait()
	var none error // the error of a channel without a list
	listed := false
	for _, r := range each {
		listed, late = listed || r.listed, late || r.late
		if r.none != nil {
			none = r.none
		}
	}
	if err != nil || listed {
		return late, err
	}
	return late, none
}

// Sync requests the templates of a new or changed channel from its network (CONTRACT.md N14). A later request retries after a failure.
func (f *Templates) Sync(ctx context.Context, workspace uuid.UUID, out commands.Outcome[channel.State]) {
	if out.Replayed || out.State.Status != channel.Connected {
		return
	}
	if _, err := f.Refresh(ctx, workspace, []int64{out.Number()}); err != nil {
		f.Log.Warn("listing the templates of a channel failed", "channel", out.ID, "error", err)
	}
}

// refreshed is the result of requesting one channel's list.
type refreshed struct {
	listed bool // a list exists
	late   bool // the list is stale or missing
	none   error
}

func (f *Templates) refresh(ctx context.Context, workspace uuid.UUID, id int64) (r refreshed, err error) {
	stream := strconv.FormatInt(id, 10)
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, stream)
	if err != nil || l.State.Type != channel.Chat || l.Workspace != workspace {
		return r, err
	}
	if f.known(id, l.State) {
		return refreshed{listed: true}, nil
	}
	_, err, _ = f.asking.Do(stream, func() (any, error) { return nil, f.ask(context.WithoutCancel(ctx), l, id) })
	if failed, ok := errors.AsType[*network.Failure](err); ok {
		r.late = true
		var last map[string]int64
		if last, err = f.Listed.TemplateIDs(ctx, workspace, id); err == nil && len(last) == 0 {
			r.none = failed.Fault()
			return r, nil
		}
	}
	r.listed = err == nil
	return r, err
}

// forceRefresh requests the templates of a channel from its network, regardless of the last request.
func (f *Templates) forceRefresh(ctx context.Context, workspace uuid.UUID, id string) error {
	number := event.Number(id)
	f.mu.Lock()
	delete(f.asked, number)
	f.mu.Unlock()
	_, err := f.Refresh(ctx, workspace, []int64{number})
	return err
}

func (f *Templates) known(id int64, s channel.State) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, ok := f.asked[id]
	return ok && f.Commands.Now().Sub(last.at) < askTemplatesInterval && last.settings.SameAccount(s)
}

// ask requests the list of one network and records it.
func (f *Templates) ask(ctx context.Context, of commands.Loaded[channel.State], id int64) error {
	account, err := f.account(ctx, strconv.FormatInt(id, 10), of.State)
	if err != nil {
		return err
	}
	asking, cancel := f.within(ctx)
	defer cancel()
	all, err := f.Networks.Templates(asking, account)
	if err != nil {
		return err
	}
	known, err := f.Listed.TemplateIDs(ctx, of.Workspace, id)
	if err != nil {
		return err
	}
	req := commands.Request{Actor: actor.Actor{Type: "provider", ID: channel.Chat, Workspace: of.Workspace}, Workspace: of.Workspace}
	for _, t := range all {
		if err := f.list(ctx, req, template.List{Template: t, Channel: id}, known[t.ProviderID]); err != nil {
			return err
		}
		delete(known, t.ProviderID)
	}
	for _, gone := range known {
		if _, err := commands.Handle(ctx, f.Commands, req, template.Kind, strconv.FormatInt(gone, 10),
			template.MoveStatus{Status: template.Gone}); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = map[int64]asked{}
	}
	f.asked[id] = asked{at: f.Commands.Now(), settings: of.State}
	return nil
}

// list records one template. The request's key gives it one id, even with concurrent processes.
func (f *Templates) list(ctx context.Context, req commands.Request, c template.List, id int64) error {
	if id == 0 {
		first := req
		first.Operation, first.Key = "list-template", strconv.FormatInt(c.Channel, 10)+" "+c.ProviderID
		out, err := commands.Create(ctx, f.Commands, first, template.Kind, f.Commands.IDFromSeries(template.Kind.Category(), 1), c)
		if err != nil || !out.Replayed {
			return err
		}
		id = out.Number()
	}
	_, err := commands.Handle(ctx, f.Commands, req, template.Kind, strconv.FormatInt(id, 10), c)
	return err
}
