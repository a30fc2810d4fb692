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
	base string // of the site
	HTTP *http.Client
}

// Visitor returns a browser that is not signed in to the console.
func (o *Office) Visitor() *visitor { return o.VisitorOf("/console") }

// VisitorOf returns a browser that is not signed in to a site.
func (o *Office) VisitorOf(site string) *visitor {
	o.T.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(o.T, err)
	return &visitor{o.T, o.URL + site, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Sign returns a browser that is signed in with the operator's key.
func (o *Office) Sign() *visitor {
	o.T.Helper()
	v := o.Visitor()
	v.Get("/sign-in").Is(200)
	v.Post("/sign-in", "key", OperatorKey).Leads("/console/")
	return v
}

// Sheet is a page as the browser got it.
type Sheet struct {
	t      testing.TB
	status int
	Text   string
	Header http.Header
}

func (v *visitor) Ask(method, path string, form url.Values) Sheet {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.HTTP.Do(r)
	require.NoError(v.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	return Sheet{v.t, response.StatusCode, string(body), response.Header}
}

func (v *visitor) Get(path string) Sheet {
	v.t.Helper()
	return v.Ask(http.MethodGet, path, nil)
}

// Post submits a form. Its token comes from the page that has it, like all its other fields.
func (v *visitor) Post(path string, pairs ...string) Sheet {
	v.t.Helper()
	form := url.Values{"token": {v.Token()}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.Ask(http.MethodPost, path, form)
}

var TokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// Token returns the token of the session's forms.
func (v *visitor) Token() string {
	v.t.Helper()
	for _, path := range []string{"/sign-in", "/"} {
		if m := TokenField.FindStringSubmatch(v.Get(path).Text); m != nil {
			return m[1]
		}
	}
	require.Fail(v.t, "no page has a form")
	return ""
}

func (s Sheet) Is(status int) Sheet {
	s.t.Helper()
	require.Equal(s.t, status, s.status, s.Words())
	return s
}

func (s Sheet) Leads(to string) {
	s.t.Helper()
	s.Is(http.StatusSeeOther)
	require.Equal(s.t, to, s.Header.Get("Location"))
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// Words returns the visible text of the page.
func (s Sheet) Words() string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(s.Text, " ")), " "))
}

func (s Sheet) Says(words ...string) Sheet {
	s.t.Helper()
	for _, w := range words {
		require.Contains(s.t, s.Words(), w)
	}
	return s
}
