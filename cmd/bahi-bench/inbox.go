package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bahi/internal/bench"
)

// inboxPage compares the first page of an inbox with many conversations with the query for its rows.
func (b *benchmark) inboxPage(ctx context.Context, s *server, m *mailing) error {
	conn, messages, err := s.tables(ctx, "messages")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is discarded
	contacts, err := tablesOf(ctx, conn, "messaging_contacts")
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `
		insert into `+messages+`.conversation (contact_id, workspace_id, last_at, unread)
		select id, workspace_id, now() - id * interval '1 second', id % 3 from `+contacts+`.contact where workspace_id = $1
		on conflict (contact_id) do update set last_at = excluded.last_at, unread = excluded.unread`, m.workspace); err != nil {
		return err
	}
	request, err := s.enterInbox(ctx)
	if err != nil {
		return err
	}
	plain := `select c.*, v.last_at, v.unread from ` + contacts + `.contact c join ` + messages + `.conversation v on v.contact_id = c.id
		where c.workspace_id = $1 and c.status = 'open' order by v.last_at desc limit 30`
	page := bench.Load{Address: s.address, Clients: 1, For: b.Round, Requests: [][]byte{request}}
	limit, found, err := b.interleave(ctx, fmt.Sprintf("inbox with %d conversations", m.contacts), func() (bench.Sample, error) {
		return repeated(ctx, conn, b.Round, plain, m.workspace)
	}, func() (bench.Sample, error) { return page.Run(ctx) })
	if err != nil {
		return err
	}
	b.conclude(bench.Figure{Name: "inbox", Title: fmt.Sprintf("inbox with %d conversations, first page: p50", m.contacts), Unit: "ms", Goal: bench.AtMost(3)}, found[0].By(bench.P50), "plain SELECT", limit.By(bench.P50))
	return nil
}

// repeated runs a query one time after the other.
func repeated(ctx context.Context, conn *pgx.Conn, during time.Duration, sql string, args ...any) (bench.Sample, error) {
	var took []time.Duration
	began := time.Now()
	for len(took) == 0 || time.Since(began) < during {
		one := time.Now()
		rows, _ := conn.Query(ctx, sql, args...) // Err returns the error
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			return bench.Sample{}, err
		}
		took = append(took, time.Since(one))
	}
	return bench.SampleOf(took, time.Since(began)), nil
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// enterInbox signs in as a browser does, and returns the request for the inbox's first page.
func (s *server) enterInbox(ctx context.Context) ([]byte, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser, base := &http.Client{Jar: jar}, "http://"+s.address+"/app/"
	ask := func(method, path, form string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(form))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		a, err := browser.Do(r)
		if err != nil {
			return "", err
		}
		defer a.Body.Close() //nolint:errcheck // it was read
		text, err := io.ReadAll(a.Body)
		return string(text), err
	}
	text, err := ask("GET", "sign-in", "")
	if err != nil {
		return nil, err
	}
	token := formToken.FindStringSubmatch(text)
	if token == nil {
		return nil, errors.New("the inbox has no form to sign in")
	}
	if text, err = ask("POST", "sign-in", url.Values{"token": {token[1]}, "email": {campaignEmail}, "password": {campaignPassword}}.Encode()); err != nil {
		return nil, err
	}
	if !strings.Contains(text, "/app/inbox/") {
		return nil, errors.New("the inbox shows no conversation")
	}
	at, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	cookies := make([]string, 0, 1)
	for _, c := range jar.Cookies(at) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	return bench.Request("GET", "/app/inbox", "", "", "Cookie: "+strings.Join(cookies, "; ")), nil
}
