package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"bahi/domain/messaging/network"
)

const (
	callTimeout = 10 * time.Second // timeout of each try
	maxBytes    = 1 << 20          // size of one response
	maxWords    = 500              // bytes that are kept of a network's error texts
	tries       = 3
	firstPause  = 200 * time.Millisecond
	longestWait = time.Hour // maximum pause that a network may request
)

// call is one request to a network.
type call struct {
	method, url string
	header      http.Header
	body        []byte
	secrets     []string // secrets that must not appear in a network's texts
	most        int64    // maximum bytes of the response; 0: maxBytes
}

// answer is a network's response.
type answer struct {
	status int
	header http.Header
	body   []byte
	call   call
}

// do sends the request once. A failure without a connection is Unreached. Any later one is Unknown: the network may have executed the
// request. do drops the client's error, which quotes the address and perhaps a token.
func do(ctx context.Context, client *http.Client, timeout time.Duration, c call) (answer, *network.Failure) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader(c.body))
	if err != nil {
		return answer{}, &network.Failure{Reason: network.Unconfigured}
	}
	if c.header != nil {
		req.Header = c.header
	}
	res, err := client.Do(req)
	switch {
	case err != nil && connected:
		return answer{}, &network.Failure{Reason: network.Unknown}
	case err != nil:
		return answer{}, &network.Failure{Reason: network.Unreached}
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	most := cmp.Or(c.most, maxBytes)
	body, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(body)) > most && c.most != 0 { // a file keeps its full size
		return answer{}, &network.Failure{Reason: network.Refused}
	}
	if err != nil || int64(len(body)) > most {
		return answer{}, &network.Failure{Reason: network.Unknown}
	}
	return answer{res.StatusCode, res.Header, body, c}, nil
}

// read decodes a successful response, or returns the failure that it means. An unreadable response is Unknown if it may hide a success: a
// 2xx or a server's error.
func (a answer) read(into any, failure func(answer) *network.Failure) *network.Failure {
	if a.status >= 200 && a.status < 300 {
		if err := json.Unmarshal(a.body, into); err != nil {
			return &network.Failure{Reason: network.Unknown}
		}
		return nil
	}
	if f := failure(a); f != nil {
		return f
	}
	switch {
	case a.status >= http.StatusInternalServerError:
		return &network.Failure{Reason: network.Unknown, Code: a.status}
	case a.status == http.StatusTooManyRequests:
		return a.failed(network.Throttled, a.status, "", "")
	case a.status == http.StatusUnauthorized:
		return &network.Failure{Reason: network.Credentials, Code: a.status}
	default:
		return &network.Failure{Reason: network.Refused, Code: a.status}
	}
}

// reasonOf returns the reason for an HTTP status that a network sends with its error.
func reasonOf(status int) network.Reason {
	switch {
	case status == http.StatusUnauthorized:
		return network.Credentials
	case status == http.StatusForbidden:
		return network.Recipient
	case status == http.StatusBadRequest:
		return network.Content
	case status == http.StatusTooManyRequests:
		return network.Throttled
	case status >= http.StatusInternalServerError:
		return network.Temporary
	default:
		return network.Refused
	}
}

// failed returns a failure with the network's text and the time of the next permitted try.
func (a answer) failed(reason network.Reason, code int, title, details string) *network.Failure {
	f := &network.Failure{Reason: reason, Code: code, Title: a.words(title), Details: a.words(details)}
	if seconds, err := strconv.ParseInt(a.header.Get("Retry-After"), 10, 32); err == nil {
		f.After = wait(seconds)
	}
	if reason == network.Throttled {
		f.After = max(f.After, time.Second)
	}
	return f
}

func wait(seconds int64) time.Duration {
	return min(max(time.Duration(seconds)*time.Second, 0), longestWait)
}

// words returns a network's text without our secrets and without control characters.
func (a answer) words(text string) string {
	for _, s := range a.call.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "********")
		}
	}
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == utf8.RuneError || c == 0x7f {
			return ' '
		}
		return c
	}, text)
	for len(text) > maxWords {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// jsonCall returns a request with a JSON body, or without one.
func jsonCall(method, url, token string, body any) call {
	c := call{method: method, url: url, header: http.Header{}, secrets: []string{token}}
	if token != "" {
		c.header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		c.header.Set("Content-Type", "application/json")
		c.body, _ = json.Marshal(body) //nolint:errchkjson // our own structs
	}
	return c
}

// number reads a number that may be in quotes; 0: there is none.
type number int

// UnmarshalJSON never fails: the readable rest of an error still counts.
func (n *number) UnmarshalJSON(data []byte) error {
	value, _ := strconv.Atoi(strings.Trim(string(data), `"`))
	*n = number(value)
	return nil
}
