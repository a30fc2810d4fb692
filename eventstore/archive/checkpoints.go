package archive

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"bahi/eventstore/audit"
)

// The further files that let an archive be verified: signed checkpoints of the log, one behind the other, and the
// public keys that they are signed with, a line each.
const (
	CheckpointsFile = "checkpoints.txt"
	PublicKeysFile  = "checkpoint-keys.txt"
)

// withCheckpoints makes files of the checkpoints.
func (o Options) withCheckpoints(store uuid.UUID) (Options, error) {
	if len(o.Checkpoints) == 0 {
		return o, nil
	}
	public := strings.Join(o.PublicKeys, "\n") + "\n"
	keys, err := audit.ParseKeys(public)
	if err != nil {
		return o, err
	}
	var signed bytes.Buffer
	for i, text := range o.Checkpoints {
		c, _, err := keys.Open(text)
		if err != nil {
			return o, fmt.Errorf("checkpoint %d for the archive: %w", i+1, err)
		}
		if c.Origin != audit.Origin(store) {
			return o, fmt.Errorf("checkpoint %d for the archive: it is of the log %s, and this is the log %s", i+1, c.Origin, audit.Origin(store))
		}
		if c.Size <= uint64(o.UpTo) { // it may be newer than what is archived
			signed.Write(text)
		}
	}
	files := maps.Clone(o.Files)
	if files == nil {
		files = map[string][]byte{}
	}
	files[CheckpointsFile], files[PublicKeysFile] = signed.Bytes(), []byte(public)
	o.Files = files
	return o, nil
}

// Checkpoints answers the checkpoints that the archive carries. They are doubtful, since the archive's keeper could have written
// other ones, but for those that one of the given keys signed. It answers a [Broken] for a signature that is wrong.
func (a *Archive) Checkpoints(trusted audit.Keys) ([]audit.Kept, error) {
	text, found, err := a.File(CheckpointsFile)
	if err != nil || !found {
		return nil, err
	}
	public, _, err := a.File(PublicKeysFile)
	if err != nil {
		return nil, err
	}
	own, err := audit.ParseKeys(string(public))
	if err != nil {
		return nil, &Broken{File: PublicKeysFile, Why: err.Error()}
	}
	if _, err := own.Collect(audit.Origin(a.StoreID), CheckpointsFile, text); err != nil {
		return nil, &Broken{File: CheckpointsFile, Why: err.Error()}
	}
	kept, err := trusted.Collect(audit.Origin(a.StoreID), "the archive's own", text)
	if err != nil {
		return nil, &Broken{File: CheckpointsFile, Why: err.Error()}
	}
	return audit.BesideTheLog(kept), nil
}

// asFinding says where what is wrong with the archive's files may begin, in its log.
func (a *Archive) asFinding(b *Broken, proven uint64) *audit.Finding {
	f := &audit.Finding{Kind: audit.Rewritten, Why: firstUpper(b.Error()) + "."}
	for _, s := range a.Segments {
		if s.File == b.File {
			f.First, f.Last = max(proven+1, uint64(s.FirstPosition)), uint64(s.LastPosition)
		}
	}
	if b.Line > 0 {
		f.Last = uint64(b.Position)
	}
	return f
}

func firstUpper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// asBroken answers the error as a [Broken], nil if it is none.
func asBroken(err error) *Broken {
	broken, _ := errors.AsType[*Broken](err)
	return broken
}
