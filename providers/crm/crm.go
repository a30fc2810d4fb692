// Package crm pushes leads to a customer relations system, in one of four dialects (CONTRACT.md 3.6), or keeps them in a sandbox.
package crm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lead is a person with an enquiry to a company.
type Lead struct {
	ID       string `json:"id"` // the enquiry's, the same for each try
	Name     string `json:"user_name"`
	Email    string `json:"user_email"`
	Phone    string `json:"user_phone,omitempty"`
	Company  string `json:"to_company"`
	Product  string `json:"product,omitempty"`
	Message  string `json:"message,omitempty"`
	Quantity int64  `json:"quantity,omitempty"`
	Source   string `json:"source_platform"`
}

// Format hides the person in logs, for every verb.
func (l Lead) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, "lead of enquiry ", l.ID) }

// names returns a first name, which may be empty, and a last name.
func (l Lead) names() (first, last string) {
	if at := strings.LastIndexByte(strings.TrimSpace(l.Name), ' '); at > 0 {
		return strings.TrimSpace(l.Name[:at]), strings.TrimSpace(l.Name[at+1:])
	}
	return "", l.Name
}

// description returns the enquiry's details as one text.
func (l Lead) description() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Enquiry %s to %s", l.ID, l.Company)
	if l.Product != "" {
		fmt.Fprintf(&b, "\nProduct: %s", l.Product)
	}
	if l.Quantity > 0 {
		fmt.Fprintf(&b, "\nQuantity: %d", l.Quantity)
	}
	if l.Message != "" {
		b.WriteString("\n" + l.Message)
	}
	return b.String()
}

// Refused is the error of a lead for which a retry is useless. Its text is ours, not the crm's.
type Refused struct{ Status int }

func (e *Refused) Error() string { return fmt.Sprintf("the crm refused the lead (%d)", e.Status) }

var errAnswer = errors.New("the crm's response is invalid")

// Settings configure the destination of leads.
type Settings struct {
	URL     string // URL to which leads are posted; empty: a sandbox
	Dialect string // data_array, properties, attribute_list or generic; empty: generic
	Pointer string // JSON pointer to the lead's id in a response; empty: the dialect's

	Token                                          string // dialects data_array, properties and generic
	Scheme                                         string // dialect data_array: the word before -oauthtoken
	TokenURL, RefreshToken, ClientID, ClientSecret string // dialect data_array: token endpoint
	AccessKey, SecretKey                           string // dialect attribute_list

	Client  *http.Client
	Timeout time.Duration // timeout of one call; 0: 10 s
	Now     func() time.Time
}

// Dialects are the names of the dialects.
var Dialects = []string{"generic", "data_array", "properties", "attribute_list"}

const (
	callTimeout = 10 * time.Second
	maxBytes    = 1 << 20
	maxID       = 200
)

// Client pushes leads.
type Client struct {
	Settings

	dialect dialect
	token   *token
}

// dialect is a crm's format of requests and responses.
type dialect interface {
	// request returns the body, and adds credentials and the crm's other fields.
	request(s Settings, l Lead, req *http.Request, token string) any
	// id returns the lead's id from a successful response, "" if it has none, or an error if it reports a failure.
	id(s Settings, status int, body []byte) (string, error)
}

var dialects = map[string]dialect{"generic": generic{}, "data_array": dataArray{}, "properties": properties{},
	"attribute_list": attributeList{}}

// New returns a client. Its error does not quote a secret.
func New(s Settings) (*Client, error) {
	s.Dialect = cmp.Or(s.Dialect, Dialects[0])
	if !slices.Contains(Dialects, s.Dialect) {
		return nil, fmt.Errorf("CRM_DIALECT: expected one of %s", strings.Join(Dialects, ", "))
	}
	for name, text := range map[string]string{"CRM_URL": s.URL, "CRM_TOKEN_URL": s.TokenURL} {
		u, err := url.Parse(text)
		if (text != "" || name == "CRM_URL") && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("%s: expected an address like https://crm.example.org/leads", name)
		}
	}
	if s.Pointer != "" && !strings.HasPrefix(s.Pointer, "/") {
		return nil, errors.New("CRM_LEAD_POINTER: expected a JSON pointer, as in /data/id")
	}
	if s.Dialect == "data_array" && s.Token == "" && (s.TokenURL == "" || s.RefreshToken == "") {
		return nil, errors.New("CRM_TOKEN, or CRM_TOKEN_URL and CRM_REFRESH_TOKEN, are needed for data_array")
	}
	s.Scheme, s.Timeout = cmp.Or(s.Scheme, "crm"), cmp.Or(s.Timeout, callTimeout)
	return &Client{Settings: s, dialect: dialects[s.Dialect], token: &token{text: s.Token}}, nil
}

// To returns the destination of leads, without keys.
func (c *Client) To() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "crm"
	}
	return u.Host
}

// Push pushes a lead and returns its id in the crm, "" if the crm gives none. Its error is a [*Refused] if a retry is useless. It renews an
// expired token once.
func (c *Client) Push(ctx context.Context, l Lead) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	for try := 0; ; try++ {
		token, err := c.token.get(ctx, c.Settings)
		if err != nil {
			return "", err
		}
		status, body, err := c.post(ctx, l, token)
		if err != nil {
			return "", err
		}
		switch {
		case status == http.StatusUnauthorized && try == 0 && c.token.renewable(c.Settings):
			c.token.drop(token)
			continue
		case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
			return "", fmt.Errorf("the crm responded with status %d", status)
		case status == http.StatusConflict && c.Dialect == "properties":
		case status < 200 || status > 299:
			return "", &Refused{Status: status}
		}
		id, err := c.dialect.id(c.Settings, status, body)
		if len(id) > maxID {
			id, err = "", errAnswer
		}
		return id, err
	}
}

func (c *Client) post(ctx context.Context, l Lead, token string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, nil)
	if err != nil {
		return 0, nil, errors.New("CRM_URL cannot be called")
	}
	text, err := json.Marshal(c.dialect.request(c.Settings, l, req, token))
	if err != nil {
		return 0, nil, fmt.Errorf("encode a lead: %w", err)
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", l.ID)
	return answer(c.Client, req)
}

// answer sends a request. Its error has Bahi's text: the HTTP client's error would quote the address, which may contain keys.
func answer(client *http.Client, req *http.Request) (status int, body []byte, err error) {
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, errors.New("the crm cannot be reached")
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	body, err = io.ReadAll(io.LimitReader(res.Body, maxBytes+1))
	if err != nil || len(body) > maxBytes {
		return 0, nil, errAnswer
	}
	return res.StatusCode, body, nil
}

// find returns the text or number at a JSON pointer (RFC 6901), "" if there is none.
func find(body []byte, pointer string) (string, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "", errAnswer
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			nth, err := strconv.Atoi(part)
			if err != nil || nth < 0 || nth >= len(v) {
				return "", nil
			}
			value = v[nth]
		default:
			return "", nil
		}
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	return "", nil
}

// Sandbox accepts every lead and pushes none.
type Sandbox struct{}

// To returns the name of the sandbox.
func (Sandbox) To() string { return "sandbox" }

// Push returns an id derived from the enquiry's. Like the chat's sandbox, it refuses names that end in 000.
func (Sandbox) Push(_ context.Context, l Lead) (string, error) {
	if strings.HasSuffix(l.Name, "000") {
		return "", &Refused{Status: http.StatusUnprocessableEntity}
	}
	return "sandbox-" + l.ID, nil
}
