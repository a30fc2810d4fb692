package apptest

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// visitor is a browser without scripts.
type visitor struct {
	t    testing.TB
	base string
	HTTP *http.Client
}

// Visitor returns a browser that is not signed in.
func (o *Server) Visitor() *visitor {
	o.T.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(o.T, err)
	return &visitor{o.T, o.URL, &http.Client{Jar: jar, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// Page is a page in the form in which the browser gets it.
type Page struct {
	t      testing.TB
	Status int
	Text   string
	Header http.Header
}

// Ask gets a page or submits a form.
func (v *visitor) Ask(method, path string, form url.Values) Page {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return Send(v.t, v.HTTP, r)
}

// Send sends a request and reads the page that it returns.
func Send(t testing.TB, client *http.Client, r *http.Request) Page {
	t.Helper()
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return Page{t, response.StatusCode, string(body), response.Header}
}

func (s Page) Is(status int) Page {
	s.t.Helper()
	require.Equal(s.t, status, s.Status, s.Words())
	return s
}

func (s Page) Leads(to string) {
	s.t.Helper()
	s.Is(http.StatusSeeOther)
	require.Equal(s.t, to, s.Header.Get("Location"))
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// Words returns the visible text of the page.
func (s Page) Words() string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(s.Text, " ")), " "))
}

func (s Page) Says(words ...string) Page {
	s.t.Helper()
	for _, w := range words {
		require.Contains(s.t, s.Words(), w)
	}
	return s
}
