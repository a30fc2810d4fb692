// Package ocrtools finds or installs the programs that read scanned pages: tesseract with its data for English, Hindi and Gujarati, and
// poppler's programs for PDFs.
package ocrtools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"bahi/internal/distro"
)

// Tools are the programs that were found. A path is empty if the program is missing.
type Tools struct {
	Tesseract string
	Version   string   // version of tesseract, such as 5.3.0
	Languages []string // the part of [Languages] for which it has data

	PDFInfo, PDFToText, PDFToPPM string

	Env []string // environment of programs that were unpacked, not installed
}

// Languages are the languages of khata pages.
var Languages = []string{"eng", "hin", "guj"}

var packages = []string{"tesseract-ocr", "tesseract-ocr-eng", "tesseract-ocr-hin", "tesseract-ocr-guj", "poppler-utils"}

// folder is the name of the unpacked packages in the cache.
const folder = "ocr"

// Missing names the missing tools, "" for none.
func (t Tools) Missing() string {
	var missing []string
	for name, path := range map[string]string{"tesseract": t.Tesseract, "pdfinfo": t.PDFInfo, "pdftotext": t.PDFToText,
		"pdftoppm": t.PDFToPPM} {
		if path == "" {
			missing = append(missing, name)
		}
	}
	if t.Tesseract != "" {
		for _, language := range Languages {
			if !slices.Contains(t.Languages, language) {
				missing = append(missing, "tesseract's data for "+language)
			}
		}
	}
	slices.Sort(missing)
	return strings.Join(missing, ", ")
}

// String describes the tools for an operator.
func (t Tools) String() string {
	var have []string
	if t.Tesseract != "" {
		have = append(have, "tesseract "+t.Version+" ("+strings.Join(t.Languages, ", ")+")")
	}
	if t.PDFToText != "" && t.PDFToPPM != "" && t.PDFInfo != "" {
		have = append(have, "poppler")
	}
	if missing := t.Missing(); missing != "" {
		have = append(have, "missing: "+missing+" (apt-get install "+strings.Join(packages, " ")+")")
	}
	return strings.Join(have, "; ")
}

// Look returns the installed tools.
func Look(ctx context.Context) Tools {
	t := lookIn(ctx, "")
	if t.Missing() == "" {
		return t
	}
	if unpacked := lookIn(ctx, filepath.Join(distro.CacheDir(), folder)); unpacked.Missing() == "" {
		return unpacked
	}
	return t
}

var versionText = regexp.MustCompile(`tesseract (\S+)`)

// lookIn looks for the programs that are below an unpacked root, or on the PATH.
func lookIn(ctx context.Context, root string) (t Tools) {
	for name, path := range map[string]*string{"tesseract": &t.Tesseract, "pdfinfo": &t.PDFInfo, "pdftotext": &t.PDFToText,
		"pdftoppm": &t.PDFToPPM} {
		if root != "" {
			name = filepath.Join(root, "usr/bin", name)
		}
		if found, err := exec.LookPath(name); err == nil {
			*path, _ = filepath.Abs(found)
		}
	}
	if root != "" {
		t.Env = []string{"LD_LIBRARY_PATH=" + distro.Libraries(root)}
		if data, _ := filepath.Glob(filepath.Join(root, "usr/share/tesseract-ocr/*/tessdata")); len(data) > 0 {
			t.Env = append(t.Env, "TESSDATA_PREFIX="+data[0])
		}
	}
	if t.Tesseract == "" {
		return t
	}
	run := func(arg string) string {
		cmd := exec.CommandContext(ctx, t.Tesseract, arg) //nolint:gosec // G204: found above
		cmd.Env = append(os.Environ(), t.Env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return ""
		}
		return string(out)
	}
	if match := versionText.FindStringSubmatch(run("--version")); match != nil {
		t.Version = match[1]
	}
	for line := range strings.FieldsSeq(run("--list-langs")) {
		if slices.Contains(Languages, line) {
			t.Languages = append(t.Languages, line)
		}
	}
	return t
}

// neverUsed matches dependencies that tesseract and poppler do without.
var neverUsed = regexp.MustCompile(`^(perl|ucf|sensible-utils|fonts-)`)

// Find returns the tools. It installs missing ones as [pgcluster.Find] installs Postgres, and logs each step. The result lacks the tools
// that it cannot install; the error has the reason.
func Find(ctx context.Context, log *slog.Logger) (t Tools, err error) {
	if t = Look(ctx); t.Missing() == "" {
		return t, nil
	}
	if !distro.Available() {
		return t, fmt.Errorf("this system has no apt-get to install %s", t.Missing())
	}
	err = distro.Alone(func() error {
		if t = Look(ctx); t.Missing() == "" { // another process was faster
			return nil
		}
		log.Info("programs for scanned pages are missing: installing them from the distribution's packages", "missing", t.Missing())
		if err := install(ctx, log); err != nil {
			return err
		}
		if t = Look(ctx); t.Missing() != "" {
			return errors.New("still missing: " + t.Missing())
		}
		log.Info("programs for scanned pages are installed", "tools", t.String())
		return nil
	})
	return t, err
}

func install(ctx context.Context, log *slog.Logger) error {
	if os.Geteuid() == 0 {
		err := distro.Install(ctx, log, choose)
		if err == nil {
			return nil
		}
		log.Warn("this way of installing programs for scanned pages failed", "error", err)
	}
	tmp, err := distro.WorkFolder(distro.CacheDir())
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	_, root, err := distro.Unpack(ctx, log, tmp, choose, neverUsed)
	if err != nil {
		return err
	}
	place := filepath.Join(distro.CacheDir(), folder)
	if t := lookIn(ctx, root); t.Missing() != "" {
		return errors.New("the packages lack " + t.Missing())
	}
	return errors.Join(os.RemoveAll(place), os.Rename(root, place))
}

func choose(ctx context.Context, options []string) ([]string, error) {
	_, err := distro.Run(ctx, "apt-cache", append(append(options, "show"), packages...)...)
	return packages, err
}

// Locator finds the tools once, when they are first wanted. Goroutines may share it.
type Locator struct {
	Log *slog.Logger
	Off bool // nothing is found

	mu    sync.Mutex
	found Tools
	why   error
	until time.Time // no search before this time
}

// again is the time after a failure until the next search for the tools.
const again = 10 * time.Minute

// ErrOff reports that a setting turns the tools off.
var ErrOff = errors.New("BAHI_OCR=off")

// Tools returns the tools, and why some are missing. The first call may install them, and others wait for it.
func (s *Locator) Tools(ctx context.Context) (Tools, error) {
	if s.Off {
		return Tools{}, ErrOff
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.IsZero() && (s.why == nil || time.Now().Before(s.until)) {
		return s.found, s.why
	}
	// An installation that is cut short leaves the system's packages half configured.
	s.found, s.why = Find(context.WithoutCancel(ctx), s.Log)
	s.until = time.Now().Add(again)
	return s.found, s.why
}

// Known describes the programs found so far, without waiting.
func (s *Locator) Known() string {
	switch {
	case s.Off:
		return "none: " + ErrOff.Error()
	case !s.mu.TryLock():
		return "being looked for or installed"
	}
	defer s.mu.Unlock()
	if s.until.IsZero() {
		return "not looked for yet"
	}
	return s.found.String()
}
