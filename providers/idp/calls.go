package idp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	callTimeout = 10 * time.Second // timeout of each try
	maxBytes    = 1 << 20          // size of one response; discovery documents and key sets have a few thousand
)

// calls is the transport to the provider. It reads each response whole, up to a limit. It returns ErrUnavailable if there is no usable
// response; the libraries would report only a text.
//
// A failed GET is retried once, but not after a timeout: a person waits. A code is sent once: it is valid for one exchange, and a provider
// may treat a second one as theft (RFC 6749, 4.1.2).
type calls struct {
	next    http.RoundTripper
	timeout time.Duration
}

func (c calls) RoundTrip(req *http.Request) (*http.Response, error) {
	res, again, err := c.try(req)
	if again && req.Method == http.MethodGet && req.Context().Err() == nil {
		res, _, err = c.try(req)
	}
	return res, err
}

// try sends the request once. again reports whether another try may succeed.
func (c calls) try(req *http.Request) (res *http.Response, again bool, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), c.timeout)
	defer cancel()
	res, err = c.next.RoundTrip(req.Clone(ctx))
	if err != nil {
		return nil, !errors.Is(err, context.DeadlineExceeded), as(ErrUnavailable, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBytes+1))
	switch {
	case err != nil:
		return nil, !errors.Is(err, context.DeadlineExceeded), as(ErrUnavailable, err)
	case len(body) > maxBytes:
		return nil, false, fmt.Errorf("%w: its response has more than %d bytes", ErrUnavailable, maxBytes)
	case res.StatusCode >= http.StatusInternalServerError:
		return nil, true, fmt.Errorf("%w: its response was %s", ErrUnavailable, res.Status)
	case res.StatusCode == http.StatusTooManyRequests, req.Method == http.MethodGet && res.StatusCode != http.StatusOK:
		return nil, false, fmt.Errorf("%w: its response was %s", ErrUnavailable, res.Status)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, false, nil
}
