package archive

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"bahi/eventstore/tlog"
)

// These files make an archive verifiable: concatenated signed checkpoints of the log, and their public keys, one per line.
const (
	CheckpointsFile = "checkpoints.txt"
	PublicKeysFile  = "checkpoint-keys.txt"
)

// withCheckpoints adds the files with the checkpoints and keys.
func (o Options) withCheckpoints(store uuid.UUID) (Options, error) {
	if len(o.Checkpoints) == 0 {
		return o, nil
	}
	public := strings.Join(o.PublicKeys, "\n") + "\n"
	keys, err := tlog.ParseKeys(public)
	if err != nil {
		return o, err
	}
	var signed bytes.Buffer
	for i, text := range o.Checkpoints {
		c, _, err := keys.Open(text)
		if err != nil {
			return o, fmt.Errorf("checkpoint %d for the archive: %w", i+1, err)
		}
		if c.Origin != tlog.Origin(store) {
			return o, fmt.Errorf("checkpoint %d for the archive: it is of the log %s, and this is the log %s", i+1, c.Origin, tlog.Origin(store))
		}
		if max(c.Size, uint64(c.Position)) <= uint64(o.UpTo) { // skip checkpoints beyond the archive
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

// Limits in bytes and in number, above those of any real archive. The archive is untrusted: a small zip file may unpack to many gigabytes.
const (
	maxSigned      = 64 << 20
	maxCheckpoints = 200_000
)

// Checkpoints returns the archive's checkpoints. Those signed by a trusted key prove something; the archive's owner could have written
// the others. For an invalid checkpoint it returns a [CorruptError] and the valid ones.
func (a *Archive) Checkpoints(trusted tlog.Keys) ([]tlog.RetainedCheckpoint, error) {
	for _, f := range a.Files {
		if (f.File == CheckpointsFile || f.File == PublicKeysFile) && f.Bytes > maxSigned {
			return nil, &CorruptError{File: f.File, Reason: fmt.Sprintf("it is longer than %d bytes", int64(maxSigned))}
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
	own, err := tlog.ParseKeys(string(public))
	if err != nil {
		return nil, &CorruptError{File: PublicKeysFile, Reason: err.Error()}
	}
	notes := tlog.SplitCheckpoints(text)
	if len(notes) > maxCheckpoints {
		return nil, &CorruptError{File: CheckpointsFile, Reason: fmt.Sprintf("it has more than %d checkpoints", maxCheckpoints)}
	}
	kept, err := trusted.ParseBundled(tlog.Origin(a.StoreID), "the archive's own", notes)
	if err == nil {
		_, err = own.ParseBundled(tlog.Origin(a.StoreID), "the archive's own", notes)
	}
	if err != nil {
		return kept, &CorruptError{File: CheckpointsFile, Reason: err.Error()}
	}
	return kept, nil
}

// asFinding returns the range of events that a fault of the archive's files may affect.
func (a *Archive) asFinding(b *CorruptError, proven uint64) tlog.Finding {
	f := tlog.Finding{Kind: tlog.Rewritten, Proven: proven, Reason: firstUpper(b.Error()) + "."}
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
	if f.First > f.Last { // the events are proven, and only the file is damaged
		f.First, f.Last = 0, 0
	}
	return f
}

func firstUpper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// asBroken returns the error as a [CorruptError], or nil.
func asBroken(err error) *CorruptError {
	broken, _ := errors.AsType[*CorruptError](err)
	return broken
}
