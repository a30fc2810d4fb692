package audit

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	audits "bahi/domain/audit"
	"bahi/domain/event"
	"bahi/eventstore/audit"
)

// Succession is what was signed of a log, and with which keys, while the log is imported into another database.
type Succession struct {
	origin string
	keys   []string // public ones, in the order in which they signed
	signed []Signed // by size, without numbers
	agree  int      // so many of them agree with the events
	tree   audit.Tree
	hasher audit.Hasher
	began  time.Time // when the first event was recorded
	named  []string  // the keys that the log itself names
	last   int64     // the greatest number of a checkpoint that an accepted restore in the log names
}

// NewSuccession begins with what an archive says: the log's public keys, a line each, and checkpoints by size, each of which
// one of these keys must have signed.
func NewSuccession(origin, keys string, notes [][]byte) (*Succession, error) {
	trusted, err := audit.ParseKeys(keys)
	if err != nil {
		return nil, err
	}
	s := &Succession{origin: origin, keys: strings.Fields(keys)}
	for i, note := range notes {
		c, _, err := trusted.Open(note)
		switch {
		case err != nil:
			return nil, fmt.Errorf("checkpoint %d: %w", i+1, err)
		case c.Origin != origin:
			return nil, fmt.Errorf("checkpoint %d: it is of the log %s, and this is the log %s", i+1, c.Origin, origin)
		case i > 0 && c.Size <= s.signed[i-1].Size:
			return nil, fmt.Errorf("checkpoint %d: it is of %d events, and follows one of %d", i+1, c.Size, s.signed[i-1].Size)
		}
		s.signed = append(s.signed, Signed{Size: c.Size, Root: c.Root[:], Note: string(note)})
	}
	return s, nil
}

// Take holds the next event of the log against the checkpoints. Its error says which of them disagrees.
func (s *Succession) Take(e event.Stored) error {
	if e.Position == 1 {
		s.began = e.At
	}
	if e.Stream == audits.Kind.Stream(audits.Log) {
		if err := s.tell(e); err != nil {
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
	if s.tree.Root() != audit.Hash(c.Root) {
		return fmt.Errorf("its events do not lead to the checkpoint of %d events: they are not those that were signed", c.Size)
	}
	c.Position, c.EventID = e.Position, e.ID
	s.agree++
	return nil
}

// tell notes what the log says of its own proofs.
func (s *Succession) tell(stored event.Stored) error {
	e, err := audits.Kind.Decode(stored)
	if err != nil {
		return err
	}
	switch what := e.Data.(type) {
	case audits.KeyRotated:
		for _, k := range []string{what.From, what.To} {
			if !slices.Contains(s.named, k) {
				s.named = append(s.named, k)
			}
		}
	case audits.RestoreAccepted:
		s.last = max(s.last, what.LastNumber)
	}
	return nil
}

// End says whether there are checkpoints of events that the log lacks.
func (s *Succession) End() error {
	if s.agree < len(s.signed) {
		return fmt.Errorf("it has a checkpoint of %d events, and %d events: the newest are missing", s.signed[s.agree].Size, s.tree.Size())
	}
	return nil
}

// Checkpoints is how many there are.
func (s *Succession) Checkpoints() int { return len(s.signed) }

// Heir is who signs the log from now on.
type Heir struct {
	Vault Vault
	Names []string // of the keys that are in the vault
	Came  bool     // these keys came with the log
	Given [][]byte // as in [Ring]
}

// PassOn notes keys and checkpoints in the tables, which are empty, if the heir has the key that signed last, or all keys that came with
// the log: then it signs on as if nothing had happened, and this answers true. Else it has a key of its own, and the checkpoints are
// those of another installation.
func (s *Succession) PassOn(ctx context.Context, tx pgx.Tx, to Heir) (bool, error) {
	private, err := to.private(ctx, s.origin)
	if err != nil {
		return false, err
	}
	keys := s.keys
	if len(s.named) > 0 { // those of a rotation, also if nothing was signed since
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
		var since *time.Time // of later ones, the log tells
		if i == 0 {
			since = &s.began
		}
		batch.Queue(`insert into audit.key (verifier, vault_name, made_at, since) values ($1, $2, $3, $4)`, k, private[k], s.began, since)
	}
	for _, c := range s.signed {
		parsed, err := audit.ParseCheckpoint([]byte(c.Note))
		if err != nil {
			return false, err
		}
		batch.Queue(`insert into audit.checkpoint (size, root, position, event_id, signed_at, note) values ($1, $2, $3, $4, $5, $6)`,
			int64(c.Size), c.Root, int64(c.Position), c.EventID, parsed.At, c.Note)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return false, fmt.Errorf("note what was signed of the log: %w", err)
	}
	return true, nil
}

// Renumber lets the numbers of checkpoints begin behind those that the log speaks of: an accepted restore abandons checkpoints by
// their numbers, and means none that is signed from now on.
func (s *Succession) Renumber(ctx context.Context, tx pgx.Tx) error {
	if s.last == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `select setval(pg_get_serial_sequence('audit.checkpoint', 'number'), $1)`, s.last); err != nil {
		return fmt.Errorf("number checkpoints behind %d: %w", s.last, err)
	}
	return nil
}

// private returns the public keys whose private ones are at hand, with their names in the vault; nil for one that was given.
func (h Heir) private(ctx context.Context, origin string) (map[string]*string, error) {
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
