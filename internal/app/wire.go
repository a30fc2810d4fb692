package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"bahi/domain/event"
	"bahi/http"
	"bahi/http/accesshttp"
	"bahi/http/api"
	"bahi/http/audithttp"
	"bahi/http/ledgerhttp"
	"bahi/http/messaginghttp"
	"bahi/http/opshttp"
	"bahi/http/webhooks"
	"bahi/projections"
	"bahi/providers/mail"
	"bahi/readmodels/auditview"
	"bahi/readmodels/opsview"
)

// The document of all operations is committed, so that reviews see changes of the interface. Its examples are recorded first.
//
//go:generate go test bahi/http -run ^TestEverySampleIsTaken$ -update
//go:generate go test bahi/http -run ^TestDocumentIsTheCommittedOne$ -update

// routes registers every operation.
func (s *System) routes(a *api.API, metrics prometheus.Registerer) {
	(&ledgerhttp.Routes{
		API: a, Books: s.Books, Views: s.Ledger, Log: s.reads, Store: s.Store.ID(), Zone: s.Zone, Now: time.Now,
		Proofs: s.Proofs, Verifier: s.Settings.Outside.PublicURL + "/verify", Scans: s.Khatas, Companies: s.Marketplace,
		Confirming: s.Confirming, Periods: s.periods(),
	}).Register()
	(&accesshttp.Routes{
		API: a, Commands: s.Commands, Views: s.Access, Accounts: s.Accounts, Entrance: s.ring, Pictures: s.Blobs, Studio: s.studio,
		Companies: s.Marketplace,
		Frontend:  s.Settings.Outside.FrontendURL, Fragment: s.Settings.Outside.Fragment, Now: time.Now, Log: s.Log,
		Provider: s.outside.provider, FlowKey: s.flowKey,
	}).Register()
	sellers := s.marketplaceRoutes()
	sellers.API = a
	sellers.Register()
	(&messaginghttp.Routes{
		API: a, Commands: s.Commands, Views: s.Messaging, Networks: s.channels, Messages: s.Messages, ChatTemplates: s.Templates,
		Files: s.Blobs, Live: s.live,
		Draw: s.drawPicture, Visitors: s.visitors,
		Campaigning: s.Campaigns.Campaigns, Flows: s.bots.flows, Engine: s.bots.engine, Zone: s.Zone,
		Now: time.Now,
	}).Register()
	(&audithttp.Routes{
		API: a, Events: &auditview.Events{Log: s.Proofs.Log, Search: &opsview.Events{DB: s.Pool}, Reveal: s.Vault.OpenPersonal}, Proofs: s.Proofs,
		Feed: s.reads, Report: s.trail(),
	}).Register()
	(&webhooks.Routes{API: a, Inbox: s.Inbox, Endpoints: s.hooks, Metrics: metrics}).Register()
	operations := &opshttp.Routes{
		API: a, Views: &opsview.Jobs{DB: s.Pool}, Queue: s.queue, Registry: s.registry(), Builds: Builds{s}, Inbox: s.Inbox, Networks: s.channels,
		Captured: map[string]opshttp.Captured{}, Eraser: s.everywhere(), People: s.Access, Commands: s.Commands,
	}
	if s.keptMails != nil {
		operations.Captured["mail"] = s.capturedMails
	}
	operations.Captured["gateway"] = s.capturedReplies
	s.captureNotices(operations.Captured)
	operations.Register()
	a.Page(blobsPath, s.Blobs.Handler(s.Log))
}

// registry returns the reader of this program's projections' states.
func (s *System) registry() *opsview.Projections {
	return &opsview.Projections{DB: s.Pool, Versions: versions()}
}

// capturedMails implements http/opshttp's Captured.
func (s *System) capturedMails(ctx context.Context, skip, limit int) ([]opshttp.Message, int, error) {
	kept, total, err := s.keptMails.List(ctx, skip, limit)
	if err != nil {
		return nil, 0, err
	}
	messages := make([]opshttp.Message, 0, len(kept))
	for _, k := range kept {
		content, err := s.keptMails.Read(ctx, k.Name)
		if errors.Is(err, mail.ErrNotKept) { // an erasure removed it
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		messages = append(messages, opshttp.Message{ID: k.Name, Time: k.SentAt, To: k.To.Address, Subject: k.Subject, Text: content.Text,
			At: k.SentAt, Status: "kept"})
	}
	return messages, total, nil
}

// ready returns the node's readiness. A parked, paused or building projection is reported, and the node is ready all the same. A projection
// that has not caught up since the start makes it unready.
func (s *System) ready(ctx context.Context) http.Readiness {
	r := http.Readiness{Ready: true}
	head, err := s.Store.Head(ctx)
	if err != nil {
		r.Ready, r.Reason = false, append(r.Reason, "reading the log failed"+PublicCause(err))
	}
	paused := s.paused(ctx)
	for _, p := range AllProjections() {
		status := s.Runner.Statuses()[p.Name]
		state := StateOf(status, paused[p.Name])
		if state == "building" {
			why := fmt.Sprintf("projection %s has not caught up yet", p.Name)
			if cause := CauseOf(status); cause != "" {
				why += ": " + cause
			}
			r.Ready, r.Reason = false, append(r.Reason, why)
		}
		r.Projections = append(r.Projections, http.Projection{
			Name: p.Name, Version: p.Version, Generation: status.Generation, State: state,
			Position: status.Position, LagEvents: lag(head, status.Position), Error: CauseOf(status),
		})
	}
	r.Head, r.Feed, r.OCR = head, s.feedReadiness(head), s.Tools.Known()
	return r
}

// StateOf returns the state of a projection: live, building, parked, waiting, paused.
func StateOf(status projections.Status, paused bool) string {
	switch {
	case paused:
		return "paused"
	case status.Error != "" && status.Generation != 0 && status.Parked: // without a generation there are no rows to read, not even old ones
		return "parked"
	case status.Error != "" && status.Generation != 0:
		return "waiting"
	case !status.Ready:
		return "building"
	default:
		return "live"
	}
}

// CauseOf returns the reason why a projection has stopped, without secrets: an error may quote an event or the database's address.
func CauseOf(status projections.Status) string {
	event, _, _ := strings.Cut(status.Error, ": ")
	switch {
	case status.Error == "", strings.HasSuffix(status.Error, projections.ErrUnknownType.Error()):
		return status.Error
	case strings.Contains(status.Error, "SQLSTATE "+diskFull):
		return "the database's disk is full"
	case strings.HasPrefix(event, "event "):
		return event + " cannot be applied"
	case status.Parked:
		return status.Error // it contains only ids of logs and generations
	default:
		return "retrying; the log of the process has the cause"
	}
}

// PublicCause returns the cause of an error of the database, if an operator can act on it and it may be public.
func PublicCause(err error) string {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == diskFull {
		return ": the database's disk is full"
	}
	return ""
}

// diskFull is Postgres's code for a full disk.
const diskFull = "53100"

// paused returns the projections that an operator has paused, from the registry: an idle runner learns of a pause only with the next event.
func (s *System) paused(ctx context.Context) map[string]bool {
	all, err := s.registry().All(ctx)
	if err != nil {
		s.Log.Warn("reading the paused projections failed", "error", err)
	}
	paused := make(map[string]bool, len(all))
	for _, p := range all {
		paused[p.Name] = p.State == "paused"
	}
	return paused
}

// lag returns the number of events between two positions.
func lag(head, position event.Position) uint64 {
	if position >= head {
		return 0
	}
	return uint64(head - position)
}

// Behind is lag in the form for a table.
func Behind(head, position event.Position) string { return strconv.FormatUint(lag(head, position), 10) }
