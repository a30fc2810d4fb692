//go:build js

// Command bahi-verify, built for a browser, is the verifier in the page of http/pages. It reads the chosen files locally and uses no
// network. The function bahiVerify takes an object and returns a promise of JSON. The function bahiScan returns the text of the QR code
// in a picture.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall/js"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"bahi/domain/event"
	"bahi/domain/ledger/replay"
	"bahi/eventstore/archive"
	"bahi/eventstore/tlog"
)

func main() {
	js.Global().Set("bahiVerify", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return promise(func() (string, error) { return answerTo(args[0]) })
	}))
	js.Global().Set("bahiScan", js.FuncOf(func(_ js.Value, args []js.Value) any { return scan(args[0]) }))
	select {}
}

// scan returns the text of the QR code in an ImageData, or "".
func scan(frame js.Value) string {
	picture := image.NewRGBA(image.Rect(0, 0, frame.Get("width").Int(), frame.Get("height").Int()))
	js.CopyBytesToGo(picture.Pix, frame.Get("data"))
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		return ""
	}
	found, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil { // most frames have no readable code
		return ""
	}
	return found.GetText()
}

// promise runs do in the background and returns a promise of its result.
func promise(do func() (string, error)) js.Value {
	var executor js.Func
	executor = js.FuncOf(func(_ js.Value, args []js.Value) any {
		go func() {
			defer executor.Release()
			text, err := do()
			if err != nil {
				args[1].Invoke(err.Error())
				return
			}
			args[0].Invoke(text)
		}()
		return nil
	})
	return js.Global().Get("Promise").New(executor)
}

// await waits for a promise.
func await(p js.Value) (value js.Value, err error) {
	done := make(chan struct{})
	good := js.FuncOf(func(_ js.Value, args []js.Value) any { value = args[0]; close(done); return nil })
	bad := js.FuncOf(func(_ js.Value, args []js.Value) any {
		err = errors.New(args[0].Call("toString").String())
		close(done)
		return nil
	})
	defer good.Release()
	defer bad.Release()
	p.Call("then", good, bad)
	<-done
	return value, err
}

// answerTo handles the page's request: {log: [{path, file}], copy: [...], keys: text, checkpoints: [{name, text}],
// code: text, books: boolean, tables: file or null, progress: function}.
func answerTo(ask js.Value) (string, error) {
	var g archive.Given
	var err error
	if g.Keys, err = tlog.ParseKeys(ask.Get("keys").String()); err != nil {
		return "", err
	}
	for i := range ask.Get("checkpoints").Length() {
		c := ask.Get("checkpoints").Index(i)
		g.Files = append(g.Files, archive.KeptFile{Name: c.Get("name").String(), Text: []byte(c.Get("text").String())})
	}
	files := given(ask.Get("log"))
	var a archive.Report
	one, single := files.single()
	if single && one.isStatement() {
		var file []byte
		if file, err = io.ReadAll(io.NewSectionReader(one, 0, one.size)); err == nil {
			a, err = examineStatement(file, g, ask.Get("code").String())
		}
	} else if single && one.isProof() {
		var text []byte
		if text, err = io.ReadAll(io.NewSectionReader(one, 0, one.size)); err == nil {
			a, err = archive.ExamineProofs(text, g)
		}
	} else {
		a, err = verifyArchive(files, given(ask.Get("copy")), g, ask.Get("progress"))
	}
	if broken, ok := errors.AsType[*archive.CorruptError](err); ok {
		a, err = archive.Report{Verdict: tlog.Tampered, Sentences: []string{"TAMPERED. " + broken.Error()}}, nil
	}
	if err != nil {
		return "", err
	}
	answer := struct {
		archive.Report
		Books *shownBooks `json:"books,omitempty"`
	}{Report: a}
	isArchive := !single || !one.isStatement() && !one.isProof()
	if isArchive && ask.Get("books").Truthy() && a.Verdict != tlog.Tampered {
		if answer.Books, err = showBooks(files, ask.Get("tables"), ask.Get("progress")); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(answer)
	return string(text), err
}

// shownBooks are the books as the page shows them.
type shownBooks struct {
	booksResult
	Text string `json:"text"` // without rows
}

// showBooks replays an archive, and compares it with a file of bahi books export if there is one.
func showBooks(files blobs, tables, progress js.Value) (shown *shownBooks, err error) {
	log, err := files.archive()
	if err != nil {
		return nil, err
	}
	var text *replay.Text
	until := event.Position(0)
	if tables.Truthy() {
		f := &blob{file: tables, size: int64(tables.Get("size").Float())}
		if text, err = replay.ReadText(io.NewSectionReader(f, 0, f.size)); err != nil {
			return nil, fmt.Errorf("the exported books: %w", err)
		}
		until = text.Position
	}
	b, err := replayed(context.Background(), log, until, func(events int64) { progress.Invoke("replaying", events, log.Manifest.Events) })
	if err != nil {
		return nil, err
	}
	shown = &shownBooks{}
	if shown.booksResult, err = resultOf(b, text); err != nil {
		return nil, err
	}
	var out strings.Builder
	h := replay.Header{Position: b.Position}
	if text != nil {
		h = text.Header
	}
	err = b.Write(h, func(l replay.Line) error { return l.Print(&out, false) })
	shown.Text = out.String()
	return shown, err
}

func verifyArchive(files, copied blobs, g archive.Given, progress js.Value) (archive.Report, error) {
	log, err := files.archive()
	if err != nil {
		return archive.Report{}, err
	}
	var other *archive.Source
	if len(copied) > 0 {
		a, err := copied.archive()
		if err != nil {
			return archive.Report{}, fmt.Errorf("the copy: %w", err)
		}
		s := a.Source("the copy")
		other = &s
	}
	return archive.Examine(context.Background(), log.Source("this archive"), g, other, func(what string, events uint64) {
		progress.Invoke(what, events, log.Manifest.Events)
	})
}

// blobs are the browser's files by path.
type blobs map[string]*blob

func given(list js.Value) blobs {
	files := blobs{}
	if list.Truthy() {
		for i := range list.Length() {
			name, f := list.Index(i).Get("path").String(), list.Index(i).Get("file")
			files[path.Clean(name)] = &blob{file: f, name: path.Base(name), size: int64(f.Get("size").Float())}
		}
	}
	return files
}

func (b blobs) single() (*blob, bool) {
	for _, f := range b {
		return f, len(b) == 1
	}
	return nil, false
}

// archive opens a zip or tar file, or the files of a folder.
func (b blobs) archive() (*archive.Archive, error) {
	if one, ok := b.single(); ok && one.name != "manifest.json" {
		return archive.OpenPacked(one, one.size)
	}
	return archive.OpenAmong(b, slices.Collect(maps.Keys(b)))
}

// Open implements [fs.FS].
func (b blobs) Open(name string) (fs.File, error) {
	f, ok := b[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openBlob{f, io.NewSectionReader(f, 0, f.size)}, nil
}

// blob is a file of the browser, read in pieces.
type blob struct {
	file js.Value
	name string
	size int64
}

// ReadAt implements [io.ReaderAt].
func (b *blob) ReadAt(to []byte, from int64) (int, error) {
	if from >= b.size {
		return 0, io.EOF
	}
	n := min(int64(len(to)), b.size-from)
	buffer, err := await(b.file.Call("slice", float64(from), float64(from+n)).Call("arrayBuffer"))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", b.name, err)
	}
	if got := js.CopyBytesToGo(to[:n], js.Global().Get("Uint8Array").New(buffer)); int64(got) < n || n < int64(len(to)) {
		return got, io.EOF
	}
	return int(n), nil
}

// isProof also checks the content, because a download may have renamed the file.
func (b *blob) isProof() bool {
	beginning := make([]byte, min(b.size, 100))
	n, _ := b.ReadAt(beginning, 0) // a later read reports the error
	return strings.HasSuffix(b.name, tlog.ProofExtension) || tlog.IsProof(beginning[:n])
}

func (b *blob) isStatement() bool {
	beginning := make([]byte, min(b.size, 3))
	n, _ := b.ReadAt(beginning, 0)
	return tlog.IsStatement(beginning[:n])
}

type openBlob struct {
	*blob
	*io.SectionReader
}

func (o *openBlob) Stat() (fs.FileInfo, error) { return blobInfo{o.blob}, nil }
func (o *openBlob) Close() error               { return nil }

// ReadAt reads the whole blob, not the section from the current offset.
func (o *openBlob) ReadAt(to []byte, from int64) (int, error) { return o.blob.ReadAt(to, from) }

type blobInfo struct{ *blob }

func (i blobInfo) Name() string     { return i.name }
func (i blobInfo) Size() int64      { return i.size }
func (blobInfo) Mode() fs.FileMode  { return 0o400 }
func (blobInfo) ModTime() time.Time { return time.Time{} }
func (blobInfo) IsDir() bool        { return false }
func (blobInfo) Sys() any           { return nil }
