package messagingcmd

import (
	"context"
	"errors"
	"slices"

	"bahi/commands"
	"bahi/domain/actor"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
)

// renewed calls a network. If the network refuses the access token, renewed gets a new token and calls the network once more.
func (f *Channels) renewed(ctx context.Context, id string, a network.Account, do func(network.Account) error) error {
	err := do(a)
	failed, is := errors.AsType[*network.Failure](err)
	if !is || failed.Reason != network.Credentials || a.RefreshToken == "" || a.Channel == 0 {
		return err
	}
	// A refresh token may be valid for one use, so only one of many concurrent calls renews. The result is stored even if that call no
	// longer waits.
	again, renewErr, _ := f.Renewing.Do(id, func() (any, error) { return f.renew(context.WithoutCancel(ctx), id, a.AccessToken) })
	if renewErr != nil {
		f.Log.Warn("renewing an access token failed", "channel", id, "error", renewErr)
		if why, is := errors.AsType[*network.Failure](renewErr); is &&
			slices.Contains([]network.Reason{network.Unreached, network.Unknown, network.Temporary, network.Throttled}, why.Reason) {
			return &network.Failure{Reason: network.Temporary} // the credentials may be valid: the token server is unavailable
		}
		return err
	}
	return do(again.(network.Account)) //nolint:forcetypeassert // renew returns an Account
}

// renew requests a new access token in place of a refused one, and stores it. If another node has renewed the token, renew returns that
// node's token.
func (f *Channels) renew(ctx context.Context, id, refused string) (network.Account, error) {
	l, err := commands.Load(ctx, f.Commands.Fresh(), channel.Kind, id)
	if err != nil {
		return network.Account{}, err
	}
	a, err := f.account(ctx, id, l.State)
	if err != nil || a.AccessToken != refused {
		return a, err
	}
	given, err := f.Networks.Renew(ctx, a)
	if err != nil {
		return a, err
	}
	req := commands.Request{Actor: actor.Actor{Type: "system", ID: "channels", Workspace: l.Workspace}, Workspace: l.Workspace}
	_, err = commands.Handle(ctx, f.Commands, req, channel.Kind, id,
		channel.Renew{ID: id, AccessToken: given.AccessToken, RefreshToken: given.RefreshToken})
	a.AccessToken = given.AccessToken
	return a, err
}
