package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"

	"bahi/internal/bench"
	"bahi/readmodels"
)

const (
	catalogPage = 50
	farPage     = 1000
	listClients = 16
	searches    = 64 // different ones
	importRows  = 10_000
	feedGrowth  = 64 // MB
)

// search measures the search for companies by a mistyped name.
func (m *marketplace) search(ctx context.Context) error {
	schema, err := tablesOf(ctx, m.conn, "companies")
	if err != nil {
		return err
	}
	var queries []string
	var requests [][]byte
	for range searches {
		typed := []byte(m.names[m.random.IntN(len(m.names))])
		typed[2], typed[3] = typed[3], typed[2]
		requests = append(requests, bench.Request("GET", "/api/v1/companies/search?q="+url.QueryEscape(string(typed)), "", ""))
		sql, args := readmodels.Search{
			Projection: schema, Table: "company", Columns: "r.id, r.name, r.slug, r.category, r.city, r.verified, r.created_at", Where: "true", Order: "created_at desc, id desc", Asked: string(typed),
		}.SQL()
		for i, arg := range append(args, catalogPage, 0) {
			list, err := json.Marshal(arg)
			if err != nil {
				return err
			}
			literal := strings.NewReplacer(`"`, "'", "[", "array[").Replace(string(list)) // of letters, blanks and numbers alone
			sql = strings.ReplaceAll(sql, fmt.Sprintf("$%d", i+1), literal)
		}
		queries = append(queries, sql+";")
	}
	load := bench.Load{Address: m.server.address, Clients: listClients, For: m.Round, Requests: requests}
	return m.besideQuery(ctx, bench.Figure{Name: "search", Title: fmt.Sprintf("search of %d companies with a typo, 16 clients: p50", m.companies()), Goal: bench.AtMost(3)}, load, queries...)
}

// besideQuery measures requests beside the queries that answer them.
func (m *marketplace) besideQuery(ctx context.Context, f bench.Figure, load bench.Load, queries ...string) error {
	limit, found, err := m.interleave(ctx, f.Title, func() (bench.Sample, error) { return m.plain.Queries(ctx, f.Name, load.Clients, queries...) },
		func() (bench.Sample, error) { return load.Run(ctx) })
	if err != nil {
		return err
	}
	f.Unit = "ms"
	m.conclude(f, found[0].By(bench.P50), "the query by pgbench", limit.By(bench.P50))
	return nil
}

// catalog measures the first and a far page of a company's products of a category.
func (m *marketplace) catalog(ctx context.Context) error {
	schema, err := tablesOf(ctx, m.conn, "products")
	if err != nil {
		return err
	}
	of, far := companyAt(0), min(farPage, m.large()/2/catalogPage)
	query := func(page int) string {
		where := fmt.Sprintf(`company_id = '%s' and category_key = 'anklets' and is_active`, of)
		return fmt.Sprintf(`select *, (select count(*) from %[1]s.product where %[2]s) from %[1]s.product where %[2]s order by nth desc limit %[3]d offset %[4]d;`,
			schema, where, catalogPage, (page-1)*catalogPage)
	}
	load := func(page int) bench.Load {
		path := fmt.Sprintf("/api/v1/catalog?company_id=%s&category=Anklets&page=%d&page_size=%d", of, page, catalogPage)
		return bench.Load{Address: m.server.address, Clients: listClients, For: m.Round, Requests: [][]byte{bench.Request("GET", path, "", "")}}
	}
	for _, page := range []int{1, far} {
		f := bench.Figure{Name: fmt.Sprintf("catalog_%d", page), Title: fmt.Sprintf("page %d of a category of %d among %d products, 16 clients: p50", page, m.large()/2, m.Rows), Goal: bench.AtMost(3)}
		if err := m.besideQuery(ctx, f, load(page), query(page)); err != nil {
			return err
		}
	}
	first, found, err := m.interleave(ctx, "the first page and a far one", func() (bench.Sample, error) { return load(1).Run(ctx) }, func() (bench.Sample, error) { return load(far).Run(ctx) })
	if err != nil {
		return err
	}
	m.conclude(bench.Figure{Name: "catalog_far", Title: fmt.Sprintf("page %d: p50", far), Unit: "ms", Goal: bench.AtMost(1.5)}, found[0].By(bench.P50), "page 1", first.By(bench.P50))
	return nil
}

// timed measures something that is done once a round, as so many things.
func timed(count int, do func() error) (bench.Sample, error) {
	began := time.Now()
	err := do()
	took := time.Since(began)
	s := bench.SampleOf([]time.Duration{took}, took)
	s.Rate *= float64(count)
	return s, err
}

// fetch sends a request and reads the answer, which must be a success.
func (s *server) fetch(ctx context.Context, method, path, kind string, body io.Reader) (text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+operatorKey)
	request.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	if text, err = io.ReadAll(answer.Body); err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s was answered with status %d: %.300s", method, path, answer.StatusCode, text)
	}
	return text, err
}

// feed measures the feed of many products, the memory for it, and the answer that nothing has changed.
func (m *marketplace) feed(ctx context.Context) error {
	schema, err := tablesOf(ctx, m.conn, "products")
	if err != nil {
		return err
	}
	of, count := companyAt(0), m.large()
	copied := fmt.Sprintf(`copy (select id, name, description, price_amount, price_currency, images[1], availability from %s.product where company_id = '%s' and is_active order by nth) to stdout`, schema, of)
	var limit bench.Series
	var found []bench.Series
	grown, err := m.server.growth(func() (err error) {
		limit, found, err = m.interleave(ctx, fmt.Sprintf("feed of %d products", count), func() (bench.Sample, error) {
			return timed(count, func() error {
				_, err := m.conn.PgConn().CopyTo(ctx, io.Discard, copied)
				return err
			})
		}, func() (bench.Sample, error) {
			return timed(count, func() error { return m.fed(ctx) })
		})
		return err
	})
	if err != nil {
		return err
	}
	m.conclude(bench.Figure{Name: "feed", Title: fmt.Sprintf("feed of %d products", count), Unit: "products/s", Goal: bench.AtLeast(0.5)}, found[0].By(bench.Rate), "COPY TO STDOUT", limit.By(bench.Rate))
	m.conclude(bench.Figure{Name: "feed_memory", Title: "memory for feeds one after the other", Unit: "MB", Goal: bench.AtMost(feedGrowth)}, []float64{grown}, "", nil)
	a, err := m.server.do(ctx, bench.Request("GET", m.feedPath(), "", ""))
	if err != nil || a.Tag == "" {
		return fmt.Errorf("the feed has no tag: %w", err)
	}
	same := bench.Load{Address: m.server.address, Clients: 1, For: m.Round, Requests: [][]byte{bench.Request("GET", m.feedPath(), "", "", "If-None-Match: "+a.Tag)}}
	selects, unchanged, err := m.interleave(ctx, "an unchanged feed", func() (bench.Sample, error) { return m.limits.Selects(ctx, 1) }, func() (bench.Sample, error) { return same.Run(ctx) })
	if err != nil {
		return err
	}
	m.conclude(bench.Figure{Name: "feed_304", Title: "the feed again, unchanged: p50", Unit: "ms", Goal: bench.AtMost(3)}, unchanged[0].By(bench.P50), "pgbench SELECT, 1 client", selects.By(bench.P50))
	return nil
}

func (m *marketplace) feedPath() string {
	return fmt.Sprintf("/api/v1/catalog/feed/%s.xml", companyAt(0))
}

// fed reads the feed of the large company.
func (m *marketplace) fed(ctx context.Context) error {
	text, err := m.server.fetch(ctx, "GET", m.feedPath(), "", nil)
	if got := bytes.Count(text, []byte("<product>")); err == nil && got != m.large() {
		err = fmt.Errorf("the feed has %d of %d products", got, m.large())
	}
	return err
}

// imports measures the import of a spreadsheet.
func (m *marketplace) imports(ctx context.Context) error {
	form, body, err := m.spreadsheet()
	if err != nil {
		return err
	}
	limit, found, err := m.interleave(ctx, "import of a spreadsheet", func() (bench.Sample, error) {
		return timed(importRows, func() error { return readAlone(m.spreadsheetPath()) })
	}, func() (bench.Sample, error) {
		return timed(importRows, func() error { return m.imported(ctx, form, body) })
	})
	if err != nil {
		return err
	}
	m.conclude(bench.Figure{Name: "import", Title: fmt.Sprintf("import of an XLSX of %d rows", importRows), Unit: "rows/s", Goal: bench.AtLeast(0.3)}, found[0].By(bench.Rate), "excelize alone", limit.By(bench.Rate))
	return nil
}

// imported imports the spreadsheet.
func (m *marketplace) imported(ctx context.Context, form string, body []byte) error {
	text, err := m.server.fetch(ctx, "POST", "/api/v1/catalog/bulk?company_id="+companyAt(sellers+1).String(), form, bytes.NewReader(body))
	if err == nil && !bytes.Contains(text, fmt.Appendf(nil, `"created":%d,"failed":0`, importRows)) {
		err = fmt.Errorf("the import was answered with %.300s", text)
	}
	return err
}

func (m *marketplace) spreadsheetPath() string { return filepath.Join(m.dir, "catalog.xlsx") }

// spreadsheet writes an XLSX of products, and returns the form that uploads it.
func (m *marketplace) spreadsheet() (form string, body []byte, err error) {
	book := excelize.NewFile()
	defer book.Close() //nolint:errcheck // temporary files
	rows, err := book.NewStreamWriter(book.GetSheetName(0))
	if err != nil {
		return "", nil, err
	}
	if err := rows.SetRow("A1", []any{"name", "description", "category", "price", "moq", "images"}); err != nil {
		return "", nil, err
	}
	for i := range importRows {
		cells := []any{m.word() + " anklet", "Silver & brass, polished by hand", "Anklets", float64(i) / 4, 1 + i%50, fmt.Sprintf("https://cdn.example/%d.jpg", i)}
		if err := rows.SetRow(fmt.Sprintf("A%d", i+2), cells); err != nil {
			return "", nil, err
		}
	}
	if err := errors.Join(rows.Flush(), book.SaveAs(m.spreadsheetPath())); err != nil {
		return "", nil, err
	}
	return uploadOf(m.spreadsheetPath())
}

// uploadOf returns the form that uploads a file.
func uploadOf(path string) (form string, body []byte, err error) {
	file, err := os.ReadFile(path) //nolint:gosec // in our own folder
	if err != nil {
		return "", nil, err
	}
	var text bytes.Buffer
	parts := multipart.NewWriter(&text)
	part, err := parts.CreateFormFile("file", filepath.Base(path))
	if err == nil {
		_, err = part.Write(file)
	}
	err = errors.Join(err, parts.Close())
	return parts.FormDataContentType(), text.Bytes(), err
}

// readAlone reads all cells of a spreadsheet.
func readAlone(path string) error {
	book, err := excelize.OpenFile(path)
	if err != nil {
		return err
	}
	defer book.Close() //nolint:errcheck // temporary files
	rows, err := book.Rows(book.GetSheetName(0))
	if err != nil {
		return err
	}
	for rows.Next() {
		if _, err := rows.Columns(); err != nil {
			return err
		}
	}
	return rows.Close()
}

// enquiries measures questions of strangers to many companies, each with three notifications.
func (m *marketplace) enquiries(ctx context.Context) error {
	round := 0
	limit, found, err := m.interleave(ctx, "enquiries", func() (bench.Sample, error) { return m.limits.Inserts(ctx, postClients) }, func() (bench.Sample, error) {
		round++
		return bench.Load{Address: m.server.address, Clients: postClients, For: m.Round, Requests: m.asked(round)}.Run(ctx)
	})
	if err != nil {
		return err
	}
	m.conclude(bench.Figure{Name: "enquiries", Title: "POST of an enquiry, 64 clients", Unit: "/s", Goal: bench.AtLeast(0.4)}, found[0].By(bench.Rate), "pgbench INSERT, 64 clients", limit.By(bench.Rate))
	return nil
}

// asked returns enquiries of different strangers.
func (m *marketplace) asked(round int) [][]byte {
	requests := make([][]byte, prebuilt)
	for i := range requests {
		requests[i] = bench.Request("POST", "/api/v1/enquiries", "", fmt.Sprintf(
			`{"to_company_id":%q,"user_name":"Asha Patel","user_email":"buyer%d.%d@example.org","user_phone":"+9198%08d","message":"What do 500 pieces cost?","quantity":500,"source_platform":"web"}`,
			companyAt(m.random.IntN(m.companies())), round, i, i))
	}
	return requests
}
