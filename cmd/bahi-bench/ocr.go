package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bahi/internal/bench"
	"bahi/internal/khatapages"
	"bahi/internal/ocrtools"
)

// scans measures the reading of a khata page by the server beside tesseract alone on the same picture.
func (b *benchmark) scans(ctx context.Context) (err error) {
	tools := ocrtools.Look(ctx)
	if missing := tools.Missing(); missing != "" {
		return fmt.Errorf("scanned pages cannot be measured: missing %s", missing)
	}
	url, err := b.database(ctx, "ocr")
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, url, b.process(url, "BAHI_LIMIT_LEDGER_KHATA_UPLOAD=off"))
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	clean, noisy := khatapages.Styles()
	const page, indian = 2, 16 // each with two sides, the second in Devanagari with its digits
	for _, of := range []struct {
		name  string
		style khatapages.Style
	}{{"clean", clean[page]}, {"noisy", noisy[page]}, {"Devanagari", clean[indian]}} {
		if err := b.scan(ctx, s, tools, of.name, of.style); err != nil {
			return err
		}
	}
	return nil
}

// scan measures a page.
func (b *benchmark) scan(ctx context.Context, s *server, tools ocrtools.Tools, name string, style khatapages.Style) error {
	file, rows := khatapages.Page(seed, style)
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return err
	}
	form, body, err := uploadOf(path)
	if err != nil {
		return err
	}
	var alone, with, grown []float64
	limit, found, err := b.interleave(ctx, "a "+name+" page", func() (bench.Sample, error) {
		var most float64
		sample, err := timed(1, func() (err error) {
			most, err = tesseractMemory(os.Getpid(), func() error {
				cmd := exec.CommandContext(ctx, tools.Tesseract, path, "stdout", "-l", strings.Join(tools.Languages, "+"), "--psm", "6", "tsv") //nolint:gosec // it was found on this machine
				cmd.Env = append(append(os.Environ(), "OMP_THREAD_LIMIT=1"), tools.Env...)                                                      // as the server runs it
				return cmd.Run()
			})
			return err
		})
		alone = append(alone, most)
		return sample, err
	}, func() (bench.Sample, error) {
		var most, more float64
		sample, err := timed(1, func() (err error) {
			more, err = s.growth(func() (err error) {
				most, err = tesseractMemory(s.pid, func() error {
					text, err := s.fetch(ctx, "POST", "/khata-upload", form, bytes.NewReader(body))
					if got := bytes.Count(text, []byte(`"raw_text"`)); err == nil && got < len(rows)/2 {
						err = fmt.Errorf("%d of the %d rows of the page were read", got, len(rows))
					}
					return err
				})
				return err
			})
			return err
		})
		with, grown = append(with, most+more), append(grown, more)
		return sample, err
	})
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "ocr_" + name, Title: "a " + name + " khata page, from upload to answer", Unit: "ms", Goal: bench.AtMost(1.3)}, found[0].By(bench.P50), "tesseract alone", limit.By(bench.P50))
	b.conclude(bench.Figure{Name: "ocr_" + name + "_memory", Title: "the same: memory of tesseract, and what the server takes beside", Unit: "MB", Goal: bench.AtMost(1.3)}, with, "tesseract alone", alone)
	b.sayf("the server itself took %.0f MB", bench.Median(grown))
	return nil
}

// tesseractMemory returns the most memory in MB of a tesseract that a process runs while something is done.
func tesseractMemory(parent int, do func() error) (most float64, err error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			return most, err
		case <-time.After(lookEvery):
			for _, pid := range childrenOf(parent) {
				if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && string(name) == "tesseract\n" {
					most = max(most, mostMemory(pid))
				}
			}
		}
	}
}

// childrenOf returns the processes that threads of a process have started.
func childrenOf(parent int) (children []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, _ := os.ReadFile(list) //nolint:gosec // a thread that has ended has no children
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				children = append(children, pid)
			}
		}
	}
	return children
}
