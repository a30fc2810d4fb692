package vault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// dataKeys has the keys of one subject, by version. A destroyed key is nil.
type dataKeys map[int]tink.AEAD

// newest returns the version to seal with, 0 if there is none, and reports whether its key still exists.
func (k dataKeys) newest() (version int, alive bool) {
	for v := range k {
		version = max(version, v)
	}
	return version, k[version] != nil
}

// maxShared limits the subjects of a shared read, so no caller waits for the keys of a whole batch.
const maxShared = 16

// read returns the current keys of the subjects, and perhaps of others, from the database. Callers that arrive during a read share the
// next one.
func (v *Vault) read(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	if len(subjects) > maxShared {
		return v.readAll(ctx, subjects)
	}
	return v.reads.join(ctx, subjects, v.readAll)
}

// readAll is read in a statement of its own.
func (v *Vault) readAll(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	rows, _ := v.pool.Query(ctx, `select subject, key_version, wrapped from vault.key where subject = any($1)`, subjects)
	type wrapped struct {
		Subject string
		Version int
		Key     []byte
	}
	stored, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wrapped])
	if err != nil {
		return nil, fmt.Errorf("read data keys: %w", err)
	}
	found := make(map[string]dataKeys, len(subjects))
	for _, k := range stored {
		if found[k.Subject] == nil {
			found[k.Subject] = dataKeys{}
		}
		if k.Key == nil {
			found[k.Subject][k.Version] = nil
			continue
		}
		key, err := v.unwrap(ctx, k.Key, ofDataKey(k.Subject, k.Version))
		if err != nil {
			return nil, fmt.Errorf("unwrap the key of %s: %w", k.Subject, err)
		}
		if found[k.Subject][k.Version], err = newAEAD(key); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readOrMake returns the keys of the subjects and creates missing ones. If nodes create one concurrently, the first succeeds, and all read
// it.
func (v *Vault) readOrMake(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	found, err := v.read(ctx, subjects)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return found[s] != nil })
	if len(missing) == 0 {
		return found, nil
	}
	made, err := v.makes.join(ctx, missing, v.makeAll)
	if err != nil {
		return nil, err
	}
	found = maps.Clone(found) // another caller may ask for the same subject
	maps.Copy(found, made)
	return found, nil
}

// joint runs one operation on keys for all callers that arrived during the previous one: a statement costs more than its keys, and a
// transaction costs a disk write.
type joint struct {
	joining sync.Mutex // protects next
	next    *together  // may still be joined
	turn    sync.Mutex
}

// together has the callers of one run.
type together struct {
	subjects []string
	ended    chan struct{} // is closed when the rest is set
	keys     map[string]dataKeys
	err      error
}

// jointTimeout limits a run, because its callers have different deadlines.
const jointTimeout = 10 * time.Second

// join runs the operation for the subjects and returns the keys of all subjects of the run.
func (j *joint) join(ctx context.Context, subjects []string,
	do func(context.Context, []string) (map[string]dataKeys, error)) (map[string]dataKeys, error) {
	j.joining.Lock()
	m, first := j.next, j.next == nil
	if first {
		m = &together{ended: make(chan struct{})}
		j.next = m
	}
	m.subjects = append(m.subjects, subjects...)
	j.joining.Unlock()
	if first {
		j.turn.Lock()
		j.joining.Lock()
		j.next = nil
		j.joining.Unlock()
		m.keys, m.err = within(context.WithoutCancel(ctx), m.subjects, do)
		j.turn.Unlock()
		close(m.ended)
	}
	select {
	case <-m.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m.err != nil && len(m.subjects) > len(subjects) { // another caller's subject may be the cause
		return within(ctx, subjects, do)
	}
	return m.keys, m.err
}

// within runs the operation once per subject, in one order on all nodes, which prevents deadlocks.
func within(ctx context.Context, subjects []string, do func(context.Context, []string) (map[string]dataKeys, error)) (map[string]dataKeys,
	error) {
	ctx, cancel := context.WithTimeout(ctx, jointTimeout)
	defer cancel()
	return do(ctx, slices.Compact(slices.Sorted(slices.Values(subjects))))
}

// makeAll inserts a key for each subject without one, and returns the keys.
func (v *Vault) makeAll(ctx context.Context, subjects []string) (map[string]dataKeys, error) {
	err := v.underMaster(ctx, func(tx pgx.Tx, m *master) error {
		wrapped := make([][]byte, len(subjects))
		for i, s := range subjects {
			var err error
			if wrapped[i], err = m.aead.Encrypt(newKey(keySize), ofDataKey(s, 1)); err != nil {
				return fmt.Errorf("wrap the key of %s: %w", s, err)
			}
		}
		_, err := tx.Exec(ctx, `
			insert into vault.key (subject, key_version, wrapped)
			select subject, 1, wrapped from unnest($1::text[], $2::bytea[]) n (subject, wrapped)
			on conflict do nothing`, subjects, wrapped)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create data keys: %w", err)
	}
	return v.readAll(ctx, subjects)
}
