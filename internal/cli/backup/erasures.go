package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bahi/eventstore/archive"
	"bahi/eventstore/vault"
	"bahi/internal/app"
)

type VaultCommand struct {
	Erasures erasuresCommand `cmd:"" help:"The list of erased users, to apply after a restore."`
}

type erasuresCommand struct {
	Export exportErasures `cmd:"" help:"Write the list to a file. Keep it apart from the backups, and write it again after each of them."`
	Apply  applyErasures  `cmd:"" help:"Erase the users in the list again. Run this after a restore, before the server starts."`
}

// ErasureList is the file of the list. It contains no names: subjects consist of ids and keyed hashes.
type ErasureList struct {
	app.Settings

	File string `arg:"" help:"The list's file."`
}

// Read returns the erasures in the file.
func (c ErasureList) Read() (list []vault.Erasure, err error) {
	text, err := os.ReadFile(c.File)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of erasures: %w", err)
	}
	return list, nil
}

// write replaces the file's content atomically.
func (c ErasureList) write(list []vault.Erasure) error {
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return archive.Replace(filepath.Dir(c.File), filepath.Base(c.File), append(text, '\n'))
}

// missing returns the erasures of list that the second list lacks.
func missing(list, in []vault.Erasure) (out []vault.Erasure) {
	named := map[string]bool{}
	for _, e := range in {
		named[e.Subject] = true
	}
	for _, e := range list {
		if !named[e.Subject] {
			out = append(out, e)
		}
	}
	return out
}

type exportErasures struct{ ErasureList }

// Run writes the list. It refuses to overwrite a file with an erasure that this system lacks: the list was not applied after a restore.
func (c exportErasures) Run(ctx context.Context, sys *app.System) error {
	list, err := sys.Vault.Erasures(ctx)
	if err != nil {
		return err
	}
	before, err := c.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if lost := missing(before, list); len(lost) > 0 {
		return fmt.Errorf("%s has %d subjects that are not erased here: apply it first, or name another file", c.File, len(lost))
	}
	if err := c.write(list); err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%d erased\n", len(list))
	return nil
}

type applyErasures struct{ ErasureList }

// Run erases the listed subjects that the restore brought back.
func (c applyErasures) Run(ctx context.Context) error {
	list, err := c.Read()
	if err != nil {
		return err
	}
	sys, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer sys.Close()
	done, err := sys.Vault.Erasures(ctx)
	if err != nil {
		return err
	}
	again := missing(list, done)
	err = sys.WithProjections(ctx, func(ctx context.Context) error {
		sys.Access.Reader.Wait = app.CatchUpTimeout
		return sys.Eraser().ReapplyErasures(ctx, list)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Shell.Out, "%d of %d were erased again\n", len(again), len(list))
	return nil
}
