package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	audittables "bahi/projections/audit"
)

// keysFile is what an archive has of the vault, if it was asked for.
const keysFile = "keys.json"

// archiving is how an archive is written, whatever goes into it.
type archiving struct {
	Dir    string `arg:"" help:"The archive's folder: missing or empty, or with --append an archive."`
	Append bool   `help:"Go on with the archive where it ends. An empty folder is filled from the beginning."`
	Plain  bool   `help:"Do not compress the events: any editor can show them, and they take several times the room."`
}

// options has the log up to where it ends now, with the checkpoints that an archive carries.
func (c archiving) options(ctx context.Context, sys *system) (o archive.Options, err error) {
	o = archive.Options{Program: version, At: time.Now(), Plain: c.Plain, Sparse: sys.settings.EventStore != ""}
	if o.UpTo, err = sys.store.Head(ctx); err != nil {
		return o, err
	}
	keys, err := sys.proofs.Keys(ctx)
	if err != nil {
		return o, err
	}
	for _, k := range keys {
		o.PublicKeys = append(o.PublicKeys, k.Key)
	}
	notes, err := sys.proofs.Daily(ctx, o.UpTo)
	for _, note := range notes {
		o.Checkpoints = append(o.Checkpoints, []byte(note))
	}
	return o, err
}

func (c archiving) write(ctx context.Context, sys *system, o archive.Options) (archive.Manifest, error) {
	bar := newProgress("exporting", "events")
	defer bar.end()
	o.Progress = func(done, total event.Position) { bar.show(int64(done), int64(total)) }
	if c.Append {
		return archive.Append(ctx, c.Dir, sys.store, o)
	}
	return archive.Create(ctx, c.Dir, sys.store, o)
}

type exportEvents struct {
	settings
	archiving

	WithKeys bool `help:"Add the keys of personal values and secrets, wrapped by the master key. Keep such an archive as you keep the vault: an erasure does not reach it."`
}

// Run writes the archive.
func (c exportEvents) Run(ctx context.Context) error {
	sys, err := c.openBooks(ctx, false)
	if err != nil {
		return err
	}
	defer sys.close()
	o, err := c.options(ctx, sys)
	if err != nil {
		return err
	}
	if c.WithKeys { // after the head: a value's key is there before its event is
		keys, err := sys.vault.Export(ctx)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(keys, "", " ")
		if err != nil {
			return err
		}
		o.Files = map[string][]byte{keysFile: append(text, '\n')}
	}
	m, err := c.write(ctx, sys, o)
	if err != nil {
		return err
	}
	fmt.Printf("%d events of the log %s, in %d segments\n", m.Events, m.StoreID, len(m.Segments))
	return nil
}

type importEvents struct {
	settings

	Dir        string `arg:"" help:"The archive's folder."`
	NewStoreID bool   `name:"new-store-id" help:"Give the log a name of its own, for a copy that lives beside the original. Without it, the copy takes the original's place."`
	Renumber   bool   `help:"Let positions count 1, 2, 3 …, for the archive of a log in EventStoreDB. The log gets a name of its own, and no proof of the archive holds for it."`
}

var errGaps = errors.New("the positions of this archive's log have gaps, as those of EventStoreDB have, and a log in Postgres counts 1, 2, 3 …. " +
	"With --renumber its events are imported with positions of their own, into a log of another name: what was signed holds for the archive and not for that log. " +
	"If the log itself is there, bahi events copy makes the same of it")

// Run fills the log, all or nothing.
func (c importEvents) Run(ctx context.Context) error {
	if err := c.logInPostgres("events import"); err != nil {
		return err
	}
	a, err := archive.Open(c.Dir)
	if err != nil {
		return err
	}
	if a.Positions == archive.Sparse && !c.Renumber {
		return errGaps
	}
	keys, err := keysOf(a)
	if err != nil {
		return err
	}
	if keys != nil {
		if _, err := c.masterKeyNamed(keys.MasterKeyID); err != nil {
			return err
		}
	}
	db, err := c.emptied(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	pool, err := db.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	v, err := c.vault(ctx, pool)
	if err != nil {
		return err
	}
	into := &importing{archive: a, keys: keys, vault: v, subjects: map[string]bool{}, renamed: c.NewStoreID || c.Renumber, renumbers: c.Renumber}
	if into.signed, err = signedOf(a); err != nil {
		return err
	}
	if into.given, err = seedOf("BAHI_AUDIT_KEY", c.AuditKey); err != nil {
		return err
	}
	if err := into.checkVault(ctx); err != nil {
		return err
	}
	in := postgres.Import{StoreID: a.StoreID, Events: into.events(ctx), Within: into.within}
	if into.renamed {
		in.StoreID = uuid.Nil
	}
	id, err := in.Into(ctx, pool)
	if err != nil {
		return err
	}
	fmt.Printf("%d events; this is the log %s\n", a.Manifest.Events, id)
	switch n := into.signed.Checkpoints(); {
	case n == 0:
	case into.signsOn:
		fmt.Printf("Checkpoints that hold, and are kept: %d. Whoever serves this log signs on with the same key.\n", n)
	default:
		fmt.Fprintf(os.Stderr, "Checkpoints that hold, and stay in the archive: %d. They are another installation's; this one signs with a key of its own.\n", n)
	}
	if n := len(into.subjects); keys == nil && n > 0 {
		fmt.Fprintf(os.Stderr, "The archive has no keys. What its events say of %d people and secrets stays sealed for good, here, and is shown as erased.\n"+
			"To have it, import an archive that was exported --with-keys into another empty database.\n", n)
	}
	return nil
}

// keysOf answers the archive's keys, nil when it has none.
func keysOf(a *archive.Archive) (*vault.Export, error) {
	text, found, err := a.File(keysFile)
	if err != nil || !found {
		return nil, err
	}
	var keys vault.Export
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, fmt.Errorf("read the archive's %s: %w", keysFile, err)
	}
	return &keys, nil
}

// importing is one import under way.
type importing struct {
	archive  *archive.Archive
	keys     *vault.Export // nil: none
	vault    *vault.Vault
	there    bool            // the keys are in the vault, from an import that ended before it was done
	subjects map[string]bool // whose values the events have

	signed  *audittables.Succession
	given   [][]byte // as in BAHI_AUDIT_KEY
	renamed bool     // the log gets a name of its own
	signsOn bool     // with the key that signed it before

	renumbers bool         // positions
	places    moved        // where they went
	last      event.Stored // position and time, as they are now
}

// checkVault says early what would stop the import at its end.
func (i *importing) checkVault(ctx context.Context) error {
	if i.keys == nil {
		return nil
	}
	has, err := i.vault.Export(ctx)
	if err != nil {
		return err
	}
	if len(has.Keys)+len(has.Named) == 0 {
		return nil
	}
	if i.there = slices.EqualFunc(has.Keys, i.keys.Keys, sameKey) && slices.EqualFunc(has.Named, i.keys.Named, sameNamed); !i.there {
		return fmt.Errorf("%w: import the archive into a database that no Bahi has served yet", vault.ErrNotEmpty)
	}
	return nil
}

func sameKey(a, b vault.ExportedKey) bool {
	return a.Subject == b.Subject && a.Version == b.Version && bytes.Equal(a.Wrapped, b.Wrapped)
}

func sameNamed(a, b vault.ExportedNamed) bool {
	return a.Name == b.Name && bytes.Equal(a.Wrapped, b.Wrapped)
}

// events are the archive's, watched on their way.
func (i *importing) events(ctx context.Context) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		bar := newProgress("importing", "events")
		defer bar.end()
		for e, err := range i.archive.Events(ctx) {
			if err == nil {
				bar.show(int64(e.Position), int64(i.archive.LastPosition))
				for _, s := range sealedIn(e.Data) {
					i.subjects[s.Subject()] = true
				}
				err = brokenCheckpoints(i.signed.Take(e))
			}
			if err == nil && i.renumbers {
				e, err = i.renumbered(e)
			}
			if !yield(e, err) {
				return
			}
		}
		if err := brokenCheckpoints(i.signed.End()); err != nil {
			yield(event.Stored{}, err)
		}
	}
}

// renumbered gives an event the next position, and lets it name others by theirs. Its time is not before that of the event before it,
// as it may be on EventStoreDB.
func (i *importing) renumbered(e event.Stored) (event.Stored, error) {
	if namesPositions(e) {
		if _, err := i.places.renumber(&e); err != nil {
			return e, fmt.Errorf("renumber %s@%d: %w", e.Stream, e.Revision, err)
		}
	}
	next := i.last.Position + 1
	i.places.add(e.Position, next)
	e.Position = next
	if e.At.Before(i.last.At) {
		e.At = i.last.At
	}
	i.last = event.Stored{Position: e.Position, At: e.At}
	return e, nil
}

// within does what belongs to the import of the events. The vault has a transaction of its own; if the events' then fails
// yet, the next import finds the keys in place.
func (i *importing) within(ctx context.Context, tx pgx.Tx) (err error) {
	if err := forgetTables(ctx, tx); err != nil {
		return err
	}
	switch {
	case i.there:
	case i.keys != nil:
		err = i.vault.Import(ctx, *i.keys)
	default:
		err = i.erase(ctx)
	}
	if err != nil {
		return err
	}
	return i.passOn(ctx, tx)
}

// erase says of everybody whom the events name that their keys are gone. A subject without any key would be
// the mark of another log's vault, at which whatever reads stops.
func (i *importing) erase(ctx context.Context) error {
	now := time.Now()
	list := make([]vault.Erasure, 0, len(i.subjects))
	for subject := range i.subjects {
		list = append(list, vault.Erasure{Subject: subject, At: now})
	}
	_, err := i.vault.ApplyErasures(ctx, list)
	return err
}

// forgetTables drops what projections have folded from the empty log, which had another name, and the key that was
// to sign for it.
func forgetTables(ctx context.Context, tx pgx.Tx) error {
	rows, _ := tx.Query(ctx, `delete from projection.generation returning name || '_g' || generation`)
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("forget the empty log's projections: %w", err)
	}
	for _, schema := range schemas {
		if _, err := tx.Exec(ctx, `drop schema if exists `+pgx.Identifier{schema}.Sanitize()+` cascade`); err != nil {
			return fmt.Errorf("forget the empty log's projections: %w", err)
		}
	}
	if _, err := tx.Exec(ctx, `delete from audit.checkpoint; delete from audit.key`); err != nil { // which have the log's name
		return fmt.Errorf("forget the empty log's checkpoints: %w", err)
	}
	return nil
}

// sealedIn finds the sealed values of a payload, whatever its type.
func sealedIn(data []byte) (found []event.Sealed) {
	if !bytes.Contains(data, []byte(`"sealed"`)) {
		return nil
	}
	var part any
	if err := json.Unmarshal(data, &part); err != nil {
		return nil // it is in the log, so it is JSON
	}
	var walk func(part any)
	walk = func(part any) {
		switch part := part.(type) {
		case []any:
			for _, p := range part {
				walk(p)
			}
		case map[string]any:
			if s, ok := sealedOf(part); ok {
				found = append(found, s)
				return
			}
			for _, p := range part {
				walk(p)
			}
		}
	}
	walk(part)
	return found
}

// sealedOf answers the object as a sealed value, if it is one.
func sealedOf(object map[string]any) (event.Sealed, bool) {
	text, err := json.Marshal(object)
	if err != nil {
		return event.Sealed{}, false
	}
	var personal event.Personal
	if err := json.Unmarshal(text, &personal); err == nil {
		return personal.Sealed, true
	}
	var secret event.Secret
	if err := json.Unmarshal(text, &secret); err == nil {
		return secret.Sealed, true
	}
	return event.Sealed{}, false
}

// masterKeyNamed answers the node's master key, which must be the one of this name. It makes none.
func (s settings) masterKeyNamed(id string) (text string, err error) {
	file := filepath.Join(s.Data, "keys", "master.key")
	if s.MasterKey == "" {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%w: give the one with the id %s in BAHI_MASTER_KEY, or as %s", errNoMasterKey, id, file)
		}
	}
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return "", err
	}
	mine, err := vault.MasterKeyID(key)
	if err != nil {
		return "", err
	}
	if mine != id {
		return "", fmt.Errorf("%w: it takes the one with the id %s, in BAHI_MASTER_KEY or as %s, and the one given has the id %s",
			errOtherMasterKey, id, file, mine)
	}
	return base64.StdEncoding.EncodeToString(key), nil
}

var (
	errNoMasterKey    = errors.New("there is no master key")
	errOtherMasterKey = errors.New("this is another master key")
)

// vault opens the vault of a database.
func (s settings) vault(ctx context.Context, pool *pgxpool.Pool) (*vault.Vault, error) {
	key, err := vault.LoadOrMakeMasterKey(s.Data, s.MasterKey)
	if err != nil {
		return nil, err
	}
	return vault.Open(ctx, pool, key, s.logger(false))
}
