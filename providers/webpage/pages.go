// Package webpage fetches public pages for bots. It obeys robots.txt, and never reaches the internal network (CONTRACT.md 8.11, B7, B12).
package webpage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/temoto/robotstxt"

	"bahi/domain/messaging/botsource"
	"bahi/providers/egress"
)

// agent is the fetcher's name in requests and in robots.txt.
const agent = "BahiBot"

const (
	within       = 10 * time.Second
	maxBytes     = 5 << 20
	maxRobots    = 500 << 10 // RFC 9309, section 2.5
	maxRedirects = 3
)

// Failure is the reason why a page was not fetched, in words for the bot's owner. It reveals nothing about addresses that are not allowed.
type Failure struct {
	Reason string
	Again  bool // another try may succeed
}

// Error implements error.
func (f *Failure) Error() string { return f.Reason }

// Temporary reports whether another try may succeed.
func (f *Failure) Temporary() bool { return f.Again }

var errNotAllowed = &Failure{Reason: "Address not allowed"}

// Fetcher fetches pages.
type Fetcher struct {
	named, others *http.Client // for the address that a user entered; for redirects to other sites
}

// New returns a fetcher. Exceptions lift the rules on addresses for pages that users enter, never for redirects from another site.
func New(e egress.Allowlist) *Fetcher {
	return &Fetcher{named: e.Client(), others: egress.Allowlist{}.Client()}
}

// Fetch returns the bytes of a page, a text in UTF-8. A text that is not ASCII begins with a byte order mark. The error is a [*Failure] or
// the context's.
func (f *Fetcher) Fetch(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	at, err := url.Parse(address)
	if err != nil {
		return nil, errNotAllowed
	}
	first := at.Host
	for range maxRedirects + 1 {
		client := f.others
		if at.Host == first {
			client = f.named
		}
		if err := allowed(ctx, client, at); err != nil {
			return nil, err
		}
		body, next, err := get(ctx, client, at)
		if err != nil || next == nil {
			return body, err
		}
		if next.Scheme != "http" && next.Scheme != "https" || next.User != nil {
			return nil, errNotAllowed
		}
		at = next
	}
	return nil, &Failure{Reason: "The page redirects too often"}
}

// request makes a call without cookies and credentials.
func request(ctx context.Context, client *http.Client, at *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errNotAllowed
	}
	req.Header.Set("User-Agent", agent+"/1.0")
	req.Header.Set("Accept", "text/html, text/plain;q=0.9, application/xhtml+xml")
	res, err := client.Do(req)
	switch {
	case errors.Is(err, egress.ErrNotAllowed):
		return nil, errNotAllowed
	case err != nil:
		return nil, &Failure{Reason: "The page's server cannot be reached", Again: true}
	}
	return res, nil
}

// allowed checks robots.txt. A missing or refused file allows all pages, an unavailable file none.
func allowed(ctx context.Context, client *http.Client, at *url.URL) error {
	res, err := request(ctx, client, &url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/robots.txt"})
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	switch {
	case res.StatusCode >= http.StatusInternalServerError:
		return &Failure{Reason: "The server's robots.txt cannot be read", Again: true}
	case res.StatusCode != http.StatusOK: // RFC 9309, section 2.3.1.3; redirects are not followed
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxRobots))
	if err != nil {
		return &Failure{Reason: "The server's robots.txt cannot be read", Again: true}
	}
	robots, err := robotstxt.FromBytes(text)
	if err == nil && !robots.TestAgent(at.RequestURI(), agent) {
		return &Failure{Reason: "The server's robots.txt does not allow it"}
	}
	return nil
}

// get returns the body, or the address of a redirect.
func get(ctx context.Context, client *http.Client, at *url.URL) (body []byte, next *url.URL, err error) {
	res, err := request(ctx, client, at)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	switch status := res.StatusCode; {
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		next, err := res.Location()
		if err != nil {
			return nil, nil, &Failure{Reason: "The page redirects to nowhere"}
		}
		return nil, next, nil
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return nil, nil, &Failure{Reason: fmt.Sprintf("The page's server responded with status %d", status), Again: true}
	case status != http.StatusOK:
		return nil, nil, &Failure{Reason: fmt.Sprintf("The page's server responded with status %d", status)}
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind != "" && !strings.HasPrefix(kind, "text/") && kind != "application/xhtml+xml" {
		return nil, nil, &Failure{Reason: "The page is not a text"}
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, maxBytes+1))
	switch {
	case err != nil:
		return nil, nil, &Failure{Reason: "The page's server cannot be reached", Again: true}
	case len(body) > maxBytes:
		return nil, nil, &Failure{Reason: "The page is larger than 5 MB"}
	}
	if named, err := botsource.MediaType(body); err == nil && named == botsource.PDF {
		return body, nil, nil
	}
	text, err := botsource.Decode(body, res.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, &Failure{Reason: "The page is not a text, or is not in the character set that it names"}
	}
	if len(text) > utf8.RuneCountInString(text) { // the page's own declaration no longer counts
		text = "\ufeff" + text
	}
	return []byte(text), nil, nil
}
