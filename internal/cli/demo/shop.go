package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/domain/actor"
)

// of returns an account of a ledger.
func (f *filler) of(ledger string, n int) *party {
	var all []*party
	for _, p := range f.parties {
		if p.ledger == ledger {
			all = append(all, p)
		}
	}
	return all[n%len(all)]
}

// orders creates orders of clients, and takadas for some of them.
func (f *filler) orders(ctx context.Context) error {
	count, delivered := f.plan.of(orders), f.plan.of(takadas)
	for i := range count {
		f.later(1, func(ctx context.Context) error {
			random, day := f.random("order", i), f.day(i, count)
			items := make([]map[string]any, 1+random.IntN(3))
			for k := range items {
				items[k] = map[string]any{
					"item_name": piece(random), "weight": json.Number(grams(between(random, 20_000, 300_000, 500))), "quantity": 1 + random.IntN(12),
					"making_charge": json.Number(rupees(between(random, 200_00, 3_000_00, 50_00))),
				}
			}
			id, err := f.create(ctx, "/client-order", map[string]any{
				"client_id": f.of("client", random.IntN(len(f.parties))).id, "slip_number": strconv.Itoa(100 + i), "date": day,
				"delivery_date": day + 14, "items": items,
			})
			if err != nil || i >= delivered {
				return err
			}
			return f.send(ctx, "POST", "/takada", map[string]any{
				"client_order_id": id, "date": min(day+7, f.plan.Until), "items": []map[string]any{{
					"item_name": items[0]["item_name"], "weight": json.Number(grams(between(random, 5_000, 20_000, 250))), "quantity": 1,
					"karigar_id": f.of("karigar", random.IntN(len(f.parties))).id,
				}},
			}, nil)
		})
	}
	f.done += delivered
	return f.do(ctx)
}

// drafts receives chat messages with orders, which become drafts.
func (f *filler) drafts(ctx context.Context) error {
	for i := range min(few, f.plan.of(2)) {
		f.later(0, func(ctx context.Context) error {
			random := f.random("draft", i)
			text := "for " + house(random.IntN(20))
			for range 1 + random.IntN(3) {
				text += fmt.Sprintf("\n%s %s gm %d pcs", pick(random, pieces), grams(between(random, 10_000, 90_000, 250)), 1+random.IntN(6))
			}
			by := commands.Request{Actor: actor.Actor{Type: "provider", ID: "gateway"}, Workspace: f.workspace}
			_, _, err := ledgercmd.ReceiveDraft(ctx, by, f.sys.Books, ledgercmd.Message{
				ID: fmt.Sprintf("demo %s %d", f.workspace, i), From: phone(1, i%7), Text: text, At: time.Now(),
			})
			return err
		})
	}
	return f.do(ctx)
}

// openShops creates companies. The first belongs to the workshop and has most of the products.
func (f *filler) openShops(ctx context.Context) error {
	f.companies = make([]uuid.UUID, min(few, 4+f.plan.of(1)/8))
	for i := range f.companies {
		f.later(0, func(ctx context.Context) error {
			random := f.random("company", i)
			var made struct{ ID uuid.UUID }
			city := pick(random, cities)
			err := f.send(ctx, "POST", "/api/v1/companies", map[string]any{
				"name": house(i * 7), "category": "Jewellery", "sub_category": pick(random, styles), "city": city, "country": "IN",
				"phone": "+" + phone(2, i),
				"description": fmt.Sprintf("Makers of %s and %s jewellery in %s since %d.", pick(random, styles), pick(random, styles), city,
					1950+random.IntN(60)),
			}, &made)
			f.companies[i] = made.ID
			for k := 0; err == nil && k < 2; k++ {
				first, last := person(random)
				err = f.send(ctx, "POST", "/api/v1/contacts", map[string]any{
					"first_name": first, "last_name": last, "company_id": made.ID, "designation": []string{"Owner", "Sales"}[k], "is_primary": k == 0,
					"email": fmt.Sprintf("%s.%s.%d.%d@example.org", strings.ToLower(first), strings.ToLower(last), i, k),
				}, nil)
			}
			return err
		})
	}
	return f.do(ctx)
}

// catalog imports products from files.
func (f *filler) catalog(ctx context.Context) error {
	count := f.plan.of(products)
	of := map[uuid.UUID]*strings.Builder{}
	for i := range count {
		random := f.random("product", i)
		company := f.companies[0]
		if i%3 == 2 {
			company = f.companies[1+random.IntN(len(f.companies)-1)]
		}
		if of[company] == nil {
			of[company] = &strings.Builder{}
		}
		weight, style, kind := between(random, 5_000, 200_000, 500), pick(random, styles), pick(random, pieces)
		fmt.Fprintf(of[company], "%s %s no. %d,%s,%s,%s,%d,IN,\"Silver 92.5, %s g, hallmarked. Made to order in %d days.\"\n",
			strings.ToUpper(style[:1])+style[1:], kind, 100+i, strings.ToUpper(kind[:1])+kind[1:], style, rupees(weight/1000*110_00),
			1+random.IntN(10), grams(weight), 3+random.IntN(20))
	}
	for _, company := range f.companies {
		rows := []string{}
		if text := of[company]; text != nil {
			rows = slices.Collect(strings.Lines(text.String()))
		}
		for part := range slices.Chunk(rows, 2*bulk) {
			f.later(len(part), func(ctx context.Context) error {
				return f.upload(ctx, "/api/v1/catalog/bulk?company_id="+company.String(), "catalog.csv",
					"name,category,sub_category,price,moq,origin_country,description\n"+strings.Join(part, ""))
			})
		}
	}
	return f.do(ctx)
}

// enquiries sends enquiries to the companies, and changes the status of some.
func (f *filler) enquiries(ctx context.Context) error {
	for i := range f.plan.of(enquiries) {
		f.later(1, func(ctx context.Context) error {
			random := f.random("enquiry", i)
			first, last := person(random)
			body := map[string]any{
				"to_company_id": f.companies[random.IntN(len(f.companies))], "user_name": first + " " + last, "user_phone": "+" + phone(3, i),
				"user_email": fmt.Sprintf("%s.%s%d@example.com", strings.ToLower(first), strings.ToLower(last), i),
				"quantity":   10 * (1 + random.IntN(50)), "message": fmt.Sprintf(pick(random, wishes), pick(random, cities)),
			}
			var made struct{ ID uuid.UUID }
			if err := f.send(ctx, "POST", "/api/v1/enquiries", body, &made); err != nil || random.IntN(5) < 2 {
				return err
			}
			status := pick(random, []string{"contacted", "qualified", "converted", "lost"})
			return f.send(ctx, "PATCH", "/api/v1/enquiries/"+made.ID.String(),
				map[string]any{"status": status, "notes": "Called back, " + status + "."}, nil)
		})
	}
	return f.do(ctx)
}
