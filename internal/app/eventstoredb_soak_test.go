//go:build soak

package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/esdb/esdbtest"
	"bahi/internal/app/apptest"
	"bahi/internal/pgtest"
	"bahi/migrations"
	"bahi/providers/feed/feedtest"
)

func TestNodesOnOneEventStoreTakeOverFromEachOther(t *testing.T) {
	t.Parallel()
	if apptest.Elsewhere {
		return
	}
	data := t.TempDir()
	store := apptest.ServeGateway(t, apptest.EventStore(t, "", data), data)
	failOver(t, &nodes{t: t, database: pgtest.Template(t, "migrated", migrations.Up), log: store.Connection(apptest.OperatorKey)})
}

func TestLostTailOfAnEventStoreIsRecoveredWithoutARestart(t *testing.T) {
	t.Parallel()
	if apptest.Elsewhere {
		return
	}
	folder := t.TempDir()
	cmd := apptest.EventStore(t, "", folder)
	var loses string
	for _, set := range cmd.Env {
		if value, is := strings.CutPrefix(set, "DATABASE_URL="); is {
			loses = value
		}
	}
	store := apptest.ServeGateway(t, cmd, folder).Connection(apptest.OperatorKey)
	recovers(&recovering{t: t, database: pgtest.Template(t, "migrated", migrations.Up), log: store, loses: loses})
}

func TestKilledServerWithItsLogInEventStoreDBLosesNothing(t *testing.T) {
	t.Parallel()
	losesNothingWhenKilled(t, 2, "EVENTSTORE_URL="+esdbtest.Start(t, 1).URL())
}

// A paused node keeps its connections and answers nothing. Each node is paused as the leader and as a follower.
func TestPausedNodesOfAnEventStoreLoseNothing(t *testing.T) {
	t.Parallel()
	data := pgtest.Dir(t)
	apptest.EndCluster(t, data)
	log := esdbtest.Start(t, 3)
	program := func(args ...string) *apptest.Cmd {
		cmd := apptest.Program(t, data, args...)
		cmd.Env = append(append(cmd.Env, apptest.AreasSettings()...), "EVENTSTORE_URL="+log.URL())
		return cmd
	}
	p := apptest.Serve(t, program("serve"))
	p.Ready()
	l := apptest.NewLoad(t, p.URL, 3)
	l.AllAreas()
	for round := range apptest.Rounds(t, 6) {
		leader := round / 2 % 3
		log.Node(leader).Elect()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		go l.After(ctx, 100, func() {
			paused := log.Node((leader + round%2) % 3) // the leader, or a follower
			wake := paused.Hang(t)
			log.Node((leader + 2) % 3).Elect()
			began := time.Now()
			l.After(ctx, 200, func() {
				t.Logf("200 writes in %s after the pause began", time.Since(began).Round(time.Millisecond))
				wake()
				l.After(ctx, 100, cancel)
			})
		})
		l.Run(ctx)
		require.ErrorIs(t, ctx.Err(), context.Canceled, "the load went on")
		cancel()
		l.Verify()
	}
	apptest.Healthy(t, program("doctor"))
	p.Stop()
}

func TestALogInEventStoreDBIsForwardedToo(t *testing.T) {
	t.Parallel()
	if apptest.Elsewhere {
		return
	}
	broker, data, database := feedtest.Start(t), t.TempDir(), pgtest.Template(t, "migrated", migrations.Up)
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+database, "BAHI_GATEWAY_WRITE=true")
	with := apptest.Settings(t, pgtest.Template(t, "migrated", migrations.Up))
	with.EventStore = apptest.ServeGateway(t, cmd, data).Connection(apptest.OperatorKey)
	with.Outside.FeedURL = broker.Address
	o := apptest.StartAs(t, with)
	account := apptest.IdOf(t, []byte(o.Operator().POST("/bank", `{"name":"SBI"}`).Status(201).Text))
	for range 20 {
		o.Operator().POST(apptest.Ledger(account), apptest.Deposit("2026-10-14", "1")).Status(201)
	}
	o.Stop()
	o = apptest.StartAs(t, with) // goes on from the checkpoint
	o.Operator().POST(apptest.Ledger(account), apptest.Deposit("2026-10-14", "2")).Status(201)
	log := loggedIn(t, database)
	for i, m := range broker.Messages("BAHI", len(log)) {
		require.Equal(t, log[i].ID, m.Headers().Get("ce-id"))
		require.Equal(t, log[i].Data, string(m.Data()))
	}
	metrics := o.Operator().GET("/metrics").Status(200).Text
	require.Contains(t, metrics, "bahi_feed_lag_seconds")
	require.NotContains(t, metrics, "bahi_feed_lag_events", "positions do not count events there")
}
