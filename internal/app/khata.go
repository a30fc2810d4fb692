package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"bahi/commands/ledgercmd"
	"bahi/domain/event"
	"bahi/internal/ocrtools"
	"bahi/providers/blob"
	"bahi/providers/llm/khatas"
	"bahi/providers/ocr"
	"bahi/reactors/ledgerreact"
)

// khataSettings configure the reading of scanned pages. With the zero value, the first page looks for the programs.
type khataSettings struct {
	OCR        string        `env:"BAHI_OCR" name:"ocr" default:"auto" enum:"auto,demand,off" help:"Recognition of scanned pages by tesseract and poppler: auto finds or installs them at the start, demand at the first page, off disables recognition."`
	OCRPages   int64         `env:"BAHI_OCR_PAGES" name:"ocr-pages" default:"1" unit:"pages" help:"Maximum concurrent recognitions of pages. Each uses a processor and some 300 MB."`
	KhataDays  int           `env:"BAHI_KHATA_DAYS" name:"khata-days" default:"365" unit:"days" help:"Time for which the files of khata uploads, and their recognised rows, are kept."`
	OCRTimeout time.Duration `kong:"-"` // of one run of a program; 0: a minute
	KhataLeft  string        `env:"BAHI_KHATA_LEFT" name:"khata-left" default:"in" enum:"in,out" help:"Side in the left column of a khata page that names no sides."`
}

// openKhatas connects khatas with the reader of scanned pages.
func (s *System) openKhatas() {
	o := &s.Settings.Outside
	s.Tools = &ocrtools.Locator{Log: s.Log, Off: o.OCR == "off"}
	reader := ocr.New(func(ctx context.Context) (ocr.Tools, error) {
		t, err := s.Tools.Tools(ctx)
		return ocr.Tools{Tesseract: t.Tesseract, Languages: t.Languages, PDFInfo: t.PDFInfo, PDFToText: t.PDFToText, PDFToPPM: t.PDFToPPM,
			Env: t.Env}, err
	}, o.OCRPages)
	reader.Timeout = o.OCRTimeout
	s.Khatas = &ledgercmd.Khatas{
		Books: s.Books, Reads: s.Ledger, Files: khataFiles{s}, OutLeft: o.KhataLeft == "out",
		Scanner: reader,
	}
	if s.Model.Sees() {
		s.Khatas.Sight = khatas.Sight{Model: s.Model}
	}
}

// findTools finds or installs the programs in the background of a server.
func (s *System) findTools(ctx context.Context) {
	if s.Settings.Outside.OCR != "auto" {
		return
	}
	go func() {
		if _, err := s.Tools.Tools(ctx); err != nil {
			s.Log.Warn("reading scanned pages is not possible", "error", err)
		}
	}()
}

// reading returns the configuration of the workers that read khatas.
func (s *System) reading() *ledgerreact.Reading {
	days := s.Settings.Outside.KhataDays
	days = cmp.Or(days, 365)
	return &ledgerreact.Reading{
		Read: s.Khatas.ReadLater, Remove: s.Khatas.Remove, Views: s.Ledger, Keep: time.Duration(days) * 24 * time.Hour, Now: time.Now,
	}
}

// khataFiles stores files as blobs, each encrypted with its own key. Deleting the file deletes the key.
type khataFiles struct{ *System }

const (
	khataKey  = "khata" // the vault's name of the key that wraps those of the files
	encrypted = "application/octet-stream"
)

// Put implements the commands' KhataFiles.
func (f khataFiles) Put(ctx context.Context, name string, content []byte) error {
	enclosed, err := f.Vault.SealBytes(ctx, khataKey, name, content)
	if err != nil {
		return err
	}
	return f.Blobs.Put(ctx, name, encrypted, enclosed)
}

// Get implements the commands' KhataFiles.
func (f khataFiles) Get(ctx context.Context, name string) ([]byte, error) {
	enclosed, _, err := f.Blobs.Get(ctx, name)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return f.Vault.OpenBytes(ctx, khataKey, name, enclosed)
}

// Delete implements the commands' KhataFiles.
func (f khataFiles) Delete(ctx context.Context, name string) error { return f.Blobs.Delete(ctx, name) }

// periods returns the commands that close periods of the books.
func (s *System) periods() *ledgercmd.Periods {
	return &ledgercmd.Periods{
		Books: s.Books, Khatas: s.Khatas, Reads: s.Ledger, Zone: s.Zone,
		Parked: func(ctx context.Context) (names []string, err error) {
			all, err := s.registry().Parked(ctx)
			for _, p := range all {
				if p.Kind == "projection" {
					names = append(names, p.Name)
				}
			}
			return names, err
		},
		Root: func(ctx context.Context, at event.Position) (uint64, string, error) {
			tree, err := s.Proofs.Tree.At(ctx, at)
			return tree.Size(), tree.Root().String(), err
		},
	}
}
