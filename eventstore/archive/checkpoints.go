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
		if max(c.Size, uint64(c.Position)) <= uint64(o.UpTo) { // it may be newer than what is archived
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

// More than the checkpoints are together, or the keys, that go into an archive: in bytes, and how many. Whose archive it is, nobody
// knows yet, and in a zip file there is room for much in little.
const (
	mostSigned      = 64 << 20
	mostCheckpoints = 200_000
)

// Checkpoints returns the checkpoints that the archive carries. They are doubtful, since the archive's keeper could have written
// other ones, but for those that one of the given keys signed. Beside those that are right it answers a [Broken] for one that is not.
func (a *Archive) Checkpoints(trusted audit.Keys) ([]audit.Kept, error) {
	for _, f := range a.Files {
		if (f.File == CheckpointsFile || f.File == PublicKeysFile) && f.Bytes > mostSigned {
			return nil, &Broken{File: f.File, Why: fmt.Sprintf("it is longer than %d bytes", int64(mostSigned))}
		}
	}
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
	notes := audit.SplitCheckpoints(text)
	if len(notes) > mostCheckpoints {
		return nil, &Broken{File: CheckpointsFile, Why: fmt.Sprintf("it has more than %d checkpoints", mostCheckpoints)}
	}
	kept, err := trusted.Beside(audit.Origin(a.StoreID), "the archive's own", notes)
	if err == nil {
		_, err = own.Beside(audit.Origin(a.StoreID), "the archive's own", notes)
	}
	if err != nil {
		return kept, &Broken{File: CheckpointsFile, Why: err.Error()}
	}
	return kept, nil
}

// asFinding says where what is wrong with the archive's files may begin, in its log.
func (a *Archive) asFinding(b *Broken, proven uint64) audit.Finding {
	f := audit.Finding{Kind: audit.Rewritten, Why: firstUpper(b.Error()) + "."}
	before := uint64(0)
	for _, s := range a.Segments {
		if s.File == b.File {
			f.First, f.Last = max(proven, before)+1, before+s.Events
		}
		before += s.Events
	}
	if b.Line > 0 {
		f.Last = b.Event
	}
	if f.First > f.Last { // its events are proven, and only the file around them is another one
		f.First, f.Last = 0, 0
	}
	return f
}

func firstUpper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// asBroken returns the error as a [Broken], nil if it is none.
func asBroken(err error) *Broken {
	broken, _ := errors.AsType[*Broken](err)
	return broken
}
