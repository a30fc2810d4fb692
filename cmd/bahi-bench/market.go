package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/xuri/excelize/v2"

	"bahi/internal/test/bench"
)

const password = "Kundan-meena-polki-7" //nolint:gosec // G101: of a system that lives as long as the run

// registration returns the body of a request of a new user.
func registration(email string) string {
	return fmt.Sprintf(`{"email":%q,"password":%q,"first_name":"Asha","last_name":"Shah"}`, email, password)
}

func newEmail() string { return uuid.NewString() + "@example.org" }

// registrations measures registrations, each of which hashes a password.
func (b *benchmark) registrations(ctx context.Context, s *server) error {
	load := b.load(s, 8, nil)
	load.Fresh = func() [][]byte {
		return requests(prebuilt, func(int, *rand.Rand) []byte {
			return bench.Request("POST", "/api/v1/auth/register", "", registration(newEmail()))
		})
	}
	return b.compare(ctx, insert1, b.inserts(ctx, 1), rounds(ctx, load),
		figure{name: "register", title: "registrations, 8 clients", number: bench.Rate},
		figure{name: "register_p50", title: "the same: p50", number: bench.P50})
}

// openCompanies returns the ids of new companies.
func (s *server) openCompanies(ctx context.Context, count int) (companies []uuid.UUID, err error) {
	for i := range count {
		var company struct{ ID uuid.UUID }
		body := fmt.Sprintf(`{"name":"Jewellers %d","city":"Surat"}`, i)
		if err := s.json(ctx, "POST", "/api/v1/companies", operatorKey, body, &company); err != nil {
			return nil, err
		}
		companies = append(companies, company.ID)
	}
	return companies, nil
}

// enquiries measures public enquiries to companies, each with its notifications.
func (b *benchmark) enquiries(ctx context.Context, s *server) error {
	companies, err := s.openCompanies(ctx, 20)
	if err != nil {
		return err
	}
	load := b.load(s, 64, nil)
	load.Fresh = func() [][]byte {
		return requests(prebuilt, func(i int, random *rand.Rand) []byte {
			return bench.Request("POST", "/api/v1/enquiries", "", fmt.Sprintf(`{"to_company_id":%q,"user_name":"Asha Patel",`+
				`"user_email":%q,"user_phone":"+9198%08d","message":"What do 500 pieces cost?","quantity":500,`+
				`"source_platform":"web"}`, companies[random.IntN(len(companies))], newEmail(), i))
		})
	}
	return b.compare(ctx, insert64, b.inserts(ctx, 64), rounds(ctx, load), figure{
		name: "enquiries", title: "POST of an enquiry, 64 clients", number: bench.Rate, goal: bench.AtLeast(0.25),
	})
}

// catalog measures the import of a spreadsheet of products.
func (b *benchmark) catalog(ctx context.Context, s *server) error {
	const rows = 10_000
	companies, err := s.openCompanies(ctx, 1)
	if err != nil {
		return err
	}
	file, err := spreadsheet(rows)
	if err != nil {
		return err
	}
	path, expected := "/api/v1/catalog/bulk?company_id="+companies[0].String(), fmt.Sprintf(`"created":%d,"failed":0`, rows)
	return b.compare(ctx, "excelize alone", timed(rows, func() error { return readAlone(file) }),
		timed(rows, func() error { return s.upload(ctx, path, operatorKey, "catalog.xlsx", file, expected) }),
		figure{
			name: "import", title: fmt.Sprintf("import of an XLSX of %d products", rows), number: bench.Rate, unit: "rows/s",
			goal: bench.AtLeast(0.3),
		})
}

// timed returns a round that runs do once. The rate of the round is count divided by the duration of do.
func timed(count int, do func() error) round {
	return func() (bench.Sample, error) {
		began := time.Now()
		err := do()
		return bench.Sample{Rate: float64(count) / time.Since(began).Seconds()}, err
	}
}

// spreadsheet returns an XLSX of products.
func spreadsheet(count int) ([]byte, error) {
	book := excelize.NewFile()
	defer book.Close() //nolint:errcheck // temporary files
	rows, err := book.NewStreamWriter(book.GetSheetName(0))
	if err != nil {
		return nil, err
	}
	if err := rows.SetRow("A1", []any{"name", "description", "category", "price", "moq", "images"}); err != nil {
		return nil, err
	}
	for i := range count {
		image := fmt.Sprintf("https://cdn.example/%d.jpg", i)
		cells := []any{fmt.Sprintf("Payal %d", i), "Silver & brass, polished by hand", "Anklets", float64(i) / 4, 1 + i%50, image}
		if err := rows.SetRow(fmt.Sprintf("A%d", i+2), cells); err != nil {
			return nil, err
		}
	}
	var file bytes.Buffer
	err = errors.Join(rows.Flush(), book.Write(&file))
	return file.Bytes(), err
}

// readAlone reads all cells of a spreadsheet.
func readAlone(file []byte) error {
	book, err := excelize.OpenReader(bytes.NewReader(file))
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
