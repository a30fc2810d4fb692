// Command bahi-prove checks bahi's promises while processes and connections fail.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"bahi/internal/prove/history"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var c struct {
		Histories histories `cmd:"" help:"Record the requests of clients during faults, and check the history with porcupine."`
	}
	k := kong.Parse(&c, kong.Name("bahi-prove"), kong.Description("Check bahi's promises while processes and connections fail."),
		kong.UsageOnError())
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bahi-prove:", err)
		os.Exit(1) //nolint:gocritic // the skipped stop of signals has no effect at exit
	}
}

type histories struct {
	Rounds  int           `default:"10" help:"Number of histories; each has the next seed."`
	Length  time.Duration `default:"60s" help:"Length of a history."`
	Seed    uint64        `default:"1" help:"First seed."`
	Nodes   int           `default:"1" enum:"1,3" help:"Number of nodes on one database: 1 or 3."`
	Log     string        `default:"postgres" enum:"postgres,journal" help:"Storage of the log: postgres, or journal for Postgres and a journal in EventStoreDB's protocol."`
	Faults  []string      `default:"kill,stop,pgkill,pgstop,cut,slow,clock" help:"Faults to inject; \"none\": none."`
	Clients int           `default:"6" help:"Number of clients."`
	Bahi    string        `help:"Path of the program. Without it, the program is built."`
	Out     string        `help:"Folder of histories, pictures and outputs. Without it, a temporary one, which is kept if a history is refused."`

	undecided int // parts of all histories
}

func (h *histories) Run(ctx context.Context) (err error) {
	if h.Out == "" {
		if h.Out, err = os.MkdirTemp("", "bahi-histories-"); err != nil {
			return err
		}
	} else if err = os.MkdirAll(h.Out, 0o700); err != nil {
		return err
	}
	for _, name := range h.Faults {
		if name != "none" && !slices.Contains(history.Faults(), name) {
			return fmt.Errorf("unknown fault %q: the faults are %s", name, strings.Join(history.Faults(), ", "))
		}
	}
	if h.Bahi != "" && slices.Contains(h.Faults, "clock") {
		return errors.New("clock: the clock of the program in --bahi cannot be changed; omit --bahi")
	}
	if h.Bahi == "" {
		if h.Bahi, err = history.Build(ctx, h.Out); err != nil {
			return err
		}
	}
	return h.record(ctx)
}

func (h *histories) record(ctx context.Context) (err error) {
	postgres, err := history.StartPostgres(ctx, "", h.Faults)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Stop()) }()
	refused := 0
	for round := range h.Rounds {
		s := history.Settings{
			Seed: h.Seed + uint64(round), Length: h.Length, Nodes: h.Nodes, Log: h.Log, Clients: h.Clients, Program: h.Bahi, Folder: h.Out,
		}
		if !slices.Contains(h.Faults, "none") {
			s.Faults = h.Faults
		}
		var happened []string
		s.Report = func(fault string) { happened = append(happened, fault) }
		recorded, err := history.Record(ctx, postgres, s)
		if err != nil {
			return fmt.Errorf("seed %d: %w", s.Seed, err)
		}
		path := filepath.Join(h.Out, fmt.Sprintf("%d.jsonl", s.Seed))
		if err := recorded.Save(path); err != nil {
			return err
		}
		fmt.Printf("seed %d, %d nodes, log in %s, faults: %s\n", s.Seed, s.Nodes, s.Log, strings.Join(happened, " "))
		if !h.check(recorded, path) {
			refused++
		}
	}
	return h.verdict(h.Rounds, refused)
}

// check checks one history and prints the result.
func (h *histories) check(recorded history.History, path string) bool {
	began := time.Now()
	checked := recorded.Check(h.Out)
	fmt.Printf("  %d calls, %d of unknown outcome, %d events, %d parts, %d undecided; checked in %v\n", checked.Calls, checked.Unknown,
		len(recorded.Log), checked.Parts, checked.Undecided, time.Since(began).Round(time.Millisecond))
	h.undecided += checked.Undecided
	for _, a := range checked.Anomalies {
		fmt.Printf("  REFUSED, seed %d, %s: %s\n", recorded.Settings.Seed, path, a)
	}
	if checked.Parts == 0 {
		fmt.Printf("  REFUSED, seed %d: it shows nothing, because no call reached the server\n", recorded.Settings.Seed)
	}
	return checked.Parts > 0 && len(checked.Anomalies) == 0
}

func (h *histories) verdict(all, refused int) error {
	if refused > 0 {
		return fmt.Errorf("%d of %d histories are refused; see %s", refused, all, h.Out)
	}
	fmt.Printf("%d histories without an anomaly; %d parts are undecided\n", all, h.undecided)
	return nil
}
