package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/eventstore/archive"
	"bahi/eventstore/postgres"
	"bahi/eventstore/tlog"
	"bahi/eventstore/vault"
	"bahi/internal/app"
	"bahi/internal/cli/progress"
	"bahi/projections/auditproj"
)

// KeysFile is the archive's file with the vault's keys, if it has them.
const KeysFile = "keys.json"

// Archiving has the flags of commands that write an archive.
type Archiving struct {
	Dir    string `arg:"" help:"The archive's folder: missing or empty, or with --append an archive."`
	Append bool   `help:"Continue an archive at its end. In an empty folder, start one."`
	Plain  bool   `help:"Do not compress the events, so that any editor can show them. Uncompressed events take several times the space."`
}

// Options returns the options for an archive of the whole log, with its checkpoints.
func (c Archiving) Options(ctx context.Context, sys *app.System) (o archive.Options, err error) {
	o = archive.Options{Program: app.Version, At: time.Now(), Plain: c.Plain}
	if o.UpTo, err = sys.Store.Head(ctx); err != nil {
		return o, err
	}
	keys, err := sys.Proofs.Keys(ctx)
	if err != nil {
		return o, err
	}
	for _, k := range keys {
		o.PublicKeys = append(o.PublicKeys, k.Key)
	}
	notes, err := sys.Proofs.Daily(ctx, o.UpTo)
	for _, note := range notes {
		o.Checkpoints = append(o.Checkpoints, []byte(note))
	}
	return o, err
}

func (c Archiving) Write(ctx context.Context, sys *app.System, o archive.Options) (archive.Manifest, error) {
	bar := progress.NewBar(sys.Settings.Shell.Err, "exporting", "events")
	defer bar.End()
	o.Progress = func(done, total event.Position) { bar.Show(int64(done), int64(total)) }
	if c.Append {
		return archive.Append(ctx, c.Dir, sys.Store, o)
	}
	return archive.Create(ctx, c.Dir, sys.Store, o)
}

type exportEvents struct {
	app.Settings
	Archiving

	WithKeys bool `help:"Add the keys of personal values and secrets, wrapped by the master key. Protect such an archive like the vault: erasures do not reach it."`
}

// Run writes the archive.
func (c exportEvents) Run(ctx context.Context, sys *app.System) error {
	o, err := c.Options(ctx, sys)
	if err != nil {
		return err
	}
	if c.WithKeys { // after the head: a value's key exists before its event
		keys, err := sys.Vault.Export(ctx)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(keys, "", " ")
		if err != nil {
			return err
		}
		o.Files = map[string][]byte{KeysFile: append(text, '\n')}
	}
	m, err := c.Write(ctx, sys, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%d events of the log %s, in %d segments\n", m.Events, m.StoreID, len(m.Segments))
	return nil
}

type importEvents struct {
	app.Settings

	Dir        string `arg:"" help:"The archive's folder."`
	NewStoreID bool   `name:"new-store-id" help:"Give the log a new id, for a copy beside the original. Without it, the copy replaces the original."`
}

// Run fills the log, all or nothing.
func (c importEvents) Run(ctx context.Context) error {
	a, err := archive.Open(c.Dir)
	if err != nil {
		return err
	}
	keys, err := KeysOf(a)
	if err != nil {
		return err
	}
	if keys != nil {
		if _, err := c.MasterKeyNamed(keys.MasterKeyID); err != nil {
			return err
		}
	}
	pool, done, err := c.Emptied(ctx)
	if err != nil {
		return err
	}
	defer done()
	v, err := c.OpenVault(ctx, pool, c.Logger(false))
	if err != nil {
		return err
	}
	into := &importing{said: c.Shell.Err, archive: a, keys: keys, vault: v, subjects: map[string]bool{}, renamed: c.NewStoreID}
	if into.signed, err = signedOf(a); err != nil {
		return err
	}
	if into.given, err = app.SeedOf("BAHI_AUDIT_KEY", c.AuditKey); err != nil {
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
	fmt.Fprintf(c.Shell.Out, "%d events; this is the log %s\n", a.Manifest.Events, id)
	switch n := into.signed.Checkpoints(); {
	case n == 0:
	case into.signsOn:
		fmt.Fprintf(c.Shell.Out, "Checkpoints that hold, and are kept: %d. The server of this log continues to sign with the same key.\n", n)
	default:
		fmt.Fprintf(c.Shell.Err, "Checkpoints that hold, and stay in the archive: %d. They are another installation's; this one signs with a "+
			"key of its own.\n", n)
	}
	if n := len(into.subjects); keys == nil && n > 0 {
		fmt.Fprintf(c.Shell.Err, "The archive has no keys. Its events' values of %d people and secrets stay sealed permanently here, and are "+
			"shown as erased.\n"+
			"To open them, import an archive that was exported --with-keys into another empty database.\n", n)
	}
	return nil
}

// KeysOf returns the archive's keys, nil without any.
func KeysOf(a *archive.Archive) (*vault.Export, error) {
	text, found, err := a.File(KeysFile)
	if err != nil || !found {
		return nil, err
	}
	var keys vault.Export
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, fmt.Errorf("read the archive's %s: %w", KeysFile, err)
	}
	return &keys, nil
}

// importing is a running import.
type importing struct {
	said     io.Writer // for progress
	archive  *archive.Archive
	keys     *vault.Export // nil: none
	vault    *vault.Vault
	there    bool            // an earlier import left the keys in the vault and then failed
	subjects map[string]bool // subjects of the events' values

	signed  *auditproj.ImportedHistory
	given   [][]byte // as in BAHI_AUDIT_KEY
	renamed bool     // the log gets an id of its own
	signsOn bool     // this installation continues with the archive's key
}

// checkVault finds obstacles in the vault before the import begins.
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

// events returns the archive's events, and collects their subjects.
func (i *importing) events(ctx context.Context) iter.Seq2[event.Stored, error] {
	return func(yield func(event.Stored, error) bool) {
		bar := progress.NewBar(i.said, "importing", "events")
		defer bar.End()
		for e, err := range i.archive.Events(ctx) {
			if err == nil {
				bar.Show(int64(e.Position), int64(i.archive.LastPosition))
				for _, s := range SealedIn(e.Data) {
					i.subjects[s.Subject()] = true
				}
				err = brokenCheckpoints(i.signed.Take(e))
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

// within runs in the transaction of the events' import. The vault commits its own transaction. If the transaction of the events then fails,
// the next import finds the keys.
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

// erase marks the keys of all subjects in the events as destroyed. Readers stop at a subject without any key, because the vault could be
// that of another log.
func (i *importing) erase(ctx context.Context) error {
	now := time.Now()
	list := make([]vault.Erasure, 0, len(i.subjects))
	for subject := range i.subjects {
		list = append(list, vault.Erasure{Subject: subject, At: now})
	}
	_, err := i.vault.ApplyErasures(ctx, list)
	return err
}

// forgetTables drops the tables and the signing key of the empty log, which had another id.
func forgetTables(ctx context.Context, tx pgx.Tx) error {
	rows, _ := tx.Query(ctx, `delete from projection.generation returning name || '_g' || generation`)
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("delete the empty log's projections: %w", err)
	}
	for _, schema := range schemas {
		if _, err := tx.Exec(ctx, `drop schema if exists `+pgx.Identifier{schema}.Sanitize()+` cascade`); err != nil {
			return fmt.Errorf("delete the empty log's projections: %w", err)
		}
	}
	// both name the empty log
	if _, err := tx.Exec(ctx,
		`delete from audit.checkpoint; delete from audit.key; update audit.numbering set last = 0, imported = 0`); err != nil {
		return fmt.Errorf("delete the empty log's checkpoints: %w", err)
	}
	return nil
}

// SealedIn finds the sealed values of a payload of any type.
func SealedIn(data []byte) (found []event.Sealed) {
	if !bytes.Contains(data, []byte(`"sealed"`)) {
		return nil
	}
	var part any
	if err := json.Unmarshal(data, &part); err != nil {
		return nil // the log has only JSON
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

// sealedOf returns the object as a sealed value, if it is one.
func sealedOf(object map[string]any) (event.Sealed, bool) {
	var (
		personal event.Personal
		secret   event.Secret
	)
	text, err := json.Marshal(object)
	if err == nil && json.Unmarshal(text, &personal) == nil {
		return personal.Sealed, true
	}
	return secret.Sealed, err == nil && json.Unmarshal(text, &secret) == nil
}

// signedOf returns an archive's checkpoints and their keys. One of these keys must have signed each checkpoint.
func signedOf(a *archive.Archive) (*auditproj.ImportedHistory, error) {
	if _, err := a.Checkpoints(tlog.Keys{}); err != nil { // also checks their size
		return nil, err
	}
	public, _, err := a.File(archive.PublicKeysFile)
	if err != nil {
		return nil, err
	}
	notes, _, err := a.File(archive.CheckpointsFile)
	if err != nil {
		return nil, err
	}
	s, err := auditproj.NewSuccession(tlog.Origin(a.StoreID), string(public), tlog.SplitCheckpoints(notes))
	return s, brokenCheckpoints(err)
}

// brokenCheckpoints returns err as a fault of the archive's checkpoints.
func brokenCheckpoints(err error) error {
	if err == nil {
		return nil
	}
	return &archive.CorruptError{File: archive.CheckpointsFile, Reason: err.Error()}
}

// passOn stores the checkpoints and the key, if this installation replaces the one that signed the checkpoints.
func (i *importing) passOn(ctx context.Context, tx pgx.Tx) error {
	if !i.renamed {
		has, err := i.vault.Export(ctx)
		if err != nil {
			return err
		}
		heir := auditproj.ImportTarget{Vault: i.vault, Came: i.keys != nil, Given: i.given}
		for _, k := range has.Named {
			heir.Names = append(heir.Names, k.Name)
		}
		if i.signsOn, err = i.signed.PassOn(ctx, tx, heir); err != nil {
			return err
		}
	}
	return i.signed.Renumber(ctx, tx) // an archive has one checkpoint a day, so earlier numbers have gaps
}
