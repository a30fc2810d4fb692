package console

import (
	"context"
	"encoding/base64"
	"html/template"
	"strconv"
	"strings"

	flows "bahi/commands/ledger"
	"bahi/domain/ledger/khata"
	books "bahi/readmodels/ledger"
)

const khatasOfPage = 50

// Scans has the files of khata uploads, and what was read of them. Both return nil for what is kept no longer.
type Scans interface {
	Original(ctx context.Context, blob string) ([]byte, error)
	Result(ctx context.Context, blob string) (*flows.KhataResult, error)
}

// khatas lists the uploads of all workspaces.
func (v *visit) khatas() (page, error) {
	return listed(v, page{template: "khatas", title: "Khata pages"}, khatasOfPage, nil, v.Books.AllKhatas)
}

// oneKhata is an upload with its picture beside what was read.
type oneKhata struct {
	books.Khata

	Picture template.URL // "": the file is no picture that browsers show, or kept no longer
	Result  *flows.KhataResult
}

func (v *visit) khata() (page, error) {
	p := page{template: "khata", title: "Khata page"}
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return p, khata.ErrNotFound
	}
	var k oneKhata
	if k.Khata, err = v.Books.AnyKhata(v.r.Context(), id); err != nil {
		return p, err
	}
	if k.Result, err = v.Scans.Result(v.r.Context(), k.Blob); err != nil {
		return p, err
	}
	if strings.HasPrefix(k.Type, "image/") && k.Type != "image/tiff" {
		file, err := v.Scans.Original(v.r.Context(), k.Blob)
		if err != nil {
			return p, err
		}
		if file != nil { // its type is one of ours, told by its content
			k.Picture = template.URL("data:" + k.Type + ";base64," + base64.StdEncoding.EncodeToString(file)) //nolint:gosec // G203: as above
		}
	}
	p.body = k
	return p, nil
}
