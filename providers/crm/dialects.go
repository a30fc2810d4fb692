package crm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// generic posts a lead unchanged.
type generic struct{}

func (generic) request(s Settings, l Lead, req *http.Request, _ string) any {
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	return l
}

func (generic) id(s Settings, _ int, body []byte) (string, error) {
	if len(body) == 0 {
		return "", nil
	}
	return find(body, cmp.Or(s.Pointer, "/id"))
}

// dataArray requires an array of records. Its response has a result for each, whatever the status.
type dataArray struct{}

func (dataArray) request(s Settings, l Lead, req *http.Request, token string) any {
	req.Header.Set("Authorization", s.Scheme+"-oauthtoken "+token)
	first, last := l.names()
	record := map[string]string{
		"Last_Name": last, "Email": l.Email, "Company": "Individual", "Lead_Source": "Marketplace", "Description": l.description(),
	}
	for name, value := range map[string]string{"First_Name": first, "Phone": l.Phone} {
		if value != "" {
			record[name] = value
		}
	}
	return map[string]any{"data": []any{record}}
}

func (dataArray) id(s Settings, status int, body []byte) (string, error) {
	code, err := find(body, "/data/0/code")
	switch {
	case err != nil:
		return "", err
	case code == "DUPLICATE_DATA": // an earlier try succeeded
	case code != "SUCCESS":
		return "", &Refused{Status: status}
	}
	return find(body, cmp.Or(s.Pointer, "/data/0/details/id"))
}

// properties creates a contact. An existing one is a success.
type properties struct{}

func (properties) request(s Settings, l Lead, req *http.Request, _ string) any {
	req.Header.Set("Authorization", "Bearer "+s.Token)
	first, last := l.names()
	return map[string]any{"properties": map[string]string{"email": l.Email, "firstname": first, "lastname": last, "phone": l.Phone}}
}

var existing = regexp.MustCompile(`Existing ID: ([0-9]+)`)

func (properties) id(s Settings, status int, body []byte) (string, error) {
	if status != http.StatusConflict {
		return find(body, cmp.Or(s.Pointer, "/id"))
	}
	said, err := find(body, "/message")
	if err != nil {
		return "", err
	}
	if m := existing.FindStringSubmatch(said); m != nil {
		return m[1], nil
	}
	return "", &Refused{Status: status}
}

// attributeList requires a list of names and values, and its keys in the query.
type attributeList struct{}

func (attributeList) request(s Settings, l Lead, req *http.Request, _ string) any {
	query := req.URL.Query()
	query.Set("accessKey", s.AccessKey)
	query.Set("secretKey", s.SecretKey)
	req.URL.RawQuery = query.Encode()
	type attribute struct{ Attribute, Value string }
	first, last := l.names()
	var list []attribute
	for _, a := range []attribute{
		{"FirstName", first}, {"LastName", last}, {"EmailAddress", l.Email}, {"Phone", l.Phone}, {"Source", "Marketplace"},
		{"Notes", l.description()},
	} {
		if a.Value != "" {
			list = append(list, a)
		}
	}
	return list
}

func (attributeList) id(s Settings, status int, body []byte) (string, error) {
	said, err := find(body, "/Status")
	switch {
	case err != nil:
		return "", err
	case said != "Success":
		return "", &Refused{Status: status}
	}
	return find(body, cmp.Or(s.Pointer, "/Message/Id"))
}

// token is a credential that expires.
type token struct {
	mu   sync.Mutex
	text string
	ends time.Time // zero: not known
}

// renewable reports whether the token can be renewed.
func (*token) renewable(s Settings) bool { return s.TokenURL != "" && s.RefreshToken != "" }

// get returns a token that does not expire soon.
func (t *token) get(ctx context.Context, s Settings) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.renewable(s) || t.text != "" && (t.ends.IsZero() || s.Now().Before(t.ends)) {
		return t.text, nil
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.RefreshToken}, "client_id": {s.ClientID},
		"client_secret": {s.ClientSecret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", errors.New("CRM_TOKEN_URL cannot be called")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, err := answer(s.Client, req)
	if err != nil {
		return "", err
	}
	var got struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &got) != nil || got.AccessToken == "" {
		return "", errors.New("the crm returned no token")
	}
	t.text, t.ends = got.AccessToken, time.Time{}
	if got.ExpiresIn > 0 {
		t.ends = s.Now().Add(time.Duration(got.ExpiresIn)*time.Second - early)
	}
	return t.text, nil
}

// early is how long before a token's expiry the token is renewed.
const early = 30 * time.Second

// drop discards a token that the crm refused. It keeps a token that was renewed since.
func (t *token) drop(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text == refused {
		t.text = ""
	}
}
