package events

import (
	"context"

	"github.com/jackc/pgx/v5"

	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
	"bahi/projections/auditproj"
)

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
	return &archive.CorruptError{File: archive.CheckpointsFile, Why: err.Error()}
}

// passOn stores the checkpoints and the key, if this installation replaces the one that signed the checkpoints.
func (i *Importing) passOn(ctx context.Context, tx pgx.Tx) error {
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
