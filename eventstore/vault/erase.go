package vault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Erasure records that a subject's key was destroyed.
type Erasure struct {
	Subject string    `json:"subject"`
	At      time.Time `json:"at"`
}

// Erase destroys the subject's key, and with it every value sealed with it. When Erase returns nil, the erasure is on disk. From then on no
// node can open such a value, and the subject never gets another key. Erasing again changes nothing, so a retry is safe.
//
// Append the event of the erasure first: later events in the log then hold no value of the subject.
func (v *Vault) Erase(ctx context.Context, subject string) error {
	_, err := v.ApplyErasures(ctx, []Erasure{{Subject: subject, At: time.Now()}})
	return err
}

// Erasures returns the erased subjects, oldest first. Keep the list apart from the database's backups: a
// restore brings back keys that were destroyed after the backup.
func (v *Vault) Erasures(ctx context.Context) ([]Erasure, error) {
	rows, _ := v.pool.Query(ctx, `
		select subject, min(destroyed_at) from vault.key where destroyed_at is not null
		group by subject order by 2, 1`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Erasure])
	if err != nil {
		return nil, fmt.Errorf("list erasures: %w", err)
	}
	return list, nil
}

// ApplyErasures erases all subjects of the list or, on an error, none. It returns how many were not erased before. Call it after a restore,
// with the list of [Vault.Erasures].
func (v *Vault) ApplyErasures(ctx context.Context, list []Erasure) (changed int, err error) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Erasure) int { return cmp.Or(cmp.Compare(a.Subject, b.Subject), a.At.Compare(b.At)) })
	list = slices.CompactFunc(list, func(a, b Erasure) bool { return a.Subject == b.Subject })
	subjects, moments := make([]string, len(list)), make([]time.Time, len(list))
	for i, e := range list {
		subjects[i], moments[i] = e.Subject, e.At
	}
	err = v.write(ctx, func(tx pgx.Tx) error {
		// A subject without a key gets a destroyed one, so it never gets a new one.
		tag, err := tx.Exec(ctx, `
			insert into vault.key as k (subject, key_version, wrapped, destroyed_at)
			select subject, 1, null, at from unnest($1::text[], $2::timestamptz[]) n (subject, at) order by subject
			on conflict (subject, key_version) do update set wrapped = null, destroyed_at = excluded.destroyed_at
			where k.destroyed_at is null`, subjects, moments)
		if err != nil {
			return err
		}
		changed = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, `
			update vault.key k set wrapped = null, destroyed_at = n.at
			from unnest($1::text[], $2::timestamptz[]) n (subject, at)
			where k.subject = n.subject and k.destroyed_at is null`, subjects, moments)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("erase: %w", err)
	}
	v.log.InfoContext(ctx, "data keys destroyed", "asked", len(list), "destroyed", changed)
	return changed, nil
}
