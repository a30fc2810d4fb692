package auditproj

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore/tlog"
)

// ImportedHistory has the checkpoints and keys of a log that is imported into another database.
type ImportedHistory struct {
	origin string
	keys   []string // public keys in the order of their use
	signed []Signed // by size, without numbers
	agree  int      // number of checkpoints that agree with the events
	tree   tlog.Tree
	hasher tlog.Hasher
	began  time.Time            // time of the first event
	named  []string             // keys that the log names
	since  map[string]time.Time // times of their rotations
	last   int64                // the greatest checkpoint number in an accepted restore
}

// NewSuccession returns the history with an archive's public keys, one per line, and its checkpoints by size. One of the keys must have
// signed each checkpoint.
func NewSuccession(origin, keys string, notes [][]byte) (*ImportedHistory, error) {
	trusted, err := tlog.ParseKeys(keys)
	if err != nil {
		return nil, err
	}
	s := &ImportedHistory{origin: origin, keys: strings.Fields(keys), since: map[string]time.Time{}}
	for i, note := range notes {
		c, _, err := trusted.Open(note)
		switch {
		case err != nil:
			return nil, fmt.Errorf("checkpoint %d: %w", i+1, err)
		case c.Origin != origin:
			return nil, fmt.Errorf("checkpoint %d: it is of the log %s, and this is the log %s", i+1, c.Origin, origin)
		case i > 0 && c.Size <= s.signed[i-1].Size:
			return nil, fmt.Errorf("checkpoint %d: it has %d events, but follows one of %d", i+1, c.Size, s.signed[i-1].Size)
		}
		s.signed = append(s.signed, Signed{Size: c.Size, Root: c.Root[:], Note: string(note)})
	}
	return s, nil
}

// Take compares the next event of the log with the checkpoints. Its error names the differing checkpoint.
func (s *ImportedHistory) Take(e event.Stored) error {
	if e.Position == 1 {
		s.began = e.At
	}
	if e.Stream == audit.Kind.Stream(audit.Log) {
		if err := s.apply(e); err != nil {
			return err
		}
	}
	if s.agree == len(s.signed) {
		return nil
	}
	s.tree.Append(s.hasher.Leaf(e))
	c := &s.signed[s.agree]
	if s.tree.Size() < c.Size {
		return nil
	}
	if s.tree.Root() != tlog.Hash(c.Root) {
		return fmt.Errorf("the events differ from those of the checkpoint of %d events", c.Size)
	}
	c.Position, c.EventID = e.Position, e.ID
	s.agree++
	return nil
}

// apply records an event about proofs.
func (s *ImportedHistory) apply(stored event.Stored) error {
	e, err := audit.Kind.Decode(stored)
	if err != nil {
		return err
	}
	switch what := e.Data.(type) {
	case audit.KeyRotated:
		for _, k := range []string{what.From, what.To} {
			if !slices.Contains(s.named, k) {
				s.named = append(s.named, k)
			}
		}
		if _, before := s.since[what.To]; !before {
			s.since[what.To] = e.At
		}
	case audit.RestoreAccepted:
		s.last = max(s.last, what.LastNumber)
	}
	return nil
}

// End checks that the log has all events of the checkpoints.
func (s *ImportedHistory) End() error {
	if s.agree < len(s.signed) {
		return fmt.Errorf("it has a checkpoint of %d events, but only %d events: the newest are missing", s.signed[s.agree].Size, s.tree.Size())
	}
	return nil
}

// Checkpoints returns the number of checkpoints.
func (s *ImportedHistory) Checkpoints() int { return len(s.signed) }

// ImportTarget is the signer of the imported log.
type ImportTarget struct {
	Vault Vault
	Names []string // names of the keys in the vault
	Came  bool     // these keys were imported with the log
	Given [][]byte // as in [Ring]
}

// PassOn writes keys and checkpoints to the empty tables. It returns true if the target has the last signing key, or all keys that were
// imported with the log. Then signing continues with that key. Otherwise the target signs with its own key, and the checkpoints belong to
// another installation.
func (s *ImportedHistory) PassOn(ctx context.Context, tx pgx.Tx, to ImportTarget) (bool, error) {
	private, err := to.private(ctx, s.origin)
	if err != nil {
		return false, err
	}
	keys := s.keys
	if len(s.named) > 0 { // the key of the last rotation, even without a later checkpoint
		keys = s.named
	}
	if len(keys) == 0 {
		return to.Came, nil
	}
	if _, has := private[keys[len(keys)-1]]; !has && !to.Came {
		return false, nil
	}
	var batch pgx.Batch
	for i, k := range keys {
		var since *time.Time // none: the key has not signed
		if at, rotated := s.since[k]; i == 0 {
			since = &s.began
		} else if rotated {
			since = &at
		}
		batch.Queue(`insert into audit.key (verifier, vault_name, made_at, since) values ($1, $2, $3, $4)`, k, private[k], s.began, since)
	}
	number := int64(0)
	for _, c := range s.signed {
		parsed, err := tlog.ParseCheckpoint([]byte(c.Note))
		if err != nil {
			return false, err
		}
		number = max(number+1, parsed.Number)
		batch.Queue(`insert into audit.checkpoint (number, size, root, position, event_id, signed_at, note) values ($1, $2, $3, $4, $5, $6, $7)`,
			number, int64(c.Size), c.Root, int64(c.Position), c.EventID, parsed.At, c.Note)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return false, fmt.Errorf("store the imported checkpoints: %w", err)
	}
	return true, nil
}

// Renumber makes new checkpoint numbers start after the numbers in the log. An accepted restore abandons checkpoints by number, and must
// not abandon later ones.
func (s *ImportedHistory) Renumber(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `
		insert into audit.numbering (last, imported) select n, n from (select greatest($1::bigint, max(number)) from audit.checkpoint) c (n)
		on conflict (only_row) do update set last = excluded.last, imported = excluded.imported`, s.last); err != nil {
		return fmt.Errorf("number checkpoints after %d: %w", s.last, err)
	}
	return nil
}

// private returns the public keys with available private keys, and the names of the private keys in the vault; nil for a given key.
func (h ImportTarget) private(ctx context.Context, origin string) (map[string]*string, error) {
	by := map[string]*string{}
	for _, name := range h.Names {
		if name != firstKey && !strings.HasPrefix(name, firstKey+"/") {
			continue
		}
		seed, err := h.Vault.Named(ctx, name, ed25519.SeedSize)
		if err != nil {
			return nil, err
		}
		k, err := Private(origin, seed)
		if err != nil {
			return nil, err
		}
		by[k.Public()] = &name
	}
	for _, seed := range h.Given {
		k, err := Private(origin, seed)
		if err != nil {
			return nil, err
		}
		by[k.Public()] = nil
	}
	return by, nil
}
