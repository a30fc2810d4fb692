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
	callTimeout = 10 * time.Second // of each try
	mostBytes   = 1 << 20          // of one answer; discovery documents and key sets have a few thousand
)

// calls carries what is asked of the provider. It reads each answer whole, within bounds, and makes an ErrUnavailable of all that is
// no answer: the libraries above tell that only by a text.
//
// What is read (GET) is tried a second time if the network or the provider failed, though not after a timeout: somebody waits. A code
// is sent once: it is good for one exchange, and a provider may take a second for theft (RFC 6749, 4.1.2).
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

// try asks once. again tells that another try may find it better.
func (c calls) try(req *http.Request) (res *http.Response, again bool, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), c.timeout)
	defer cancel()
	res, err = c.next.RoundTrip(req.Clone(ctx))
	if err != nil {
		return nil, !errors.Is(err, context.DeadlineExceeded), as(ErrUnavailable, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(res.Body, mostBytes+1))
	switch {
	case err != nil:
		return nil, !errors.Is(err, context.DeadlineExceeded), as(ErrUnavailable, err)
	case len(body) > mostBytes:
		return nil, false, fmt.Errorf("%w: its answer has more than %d bytes", ErrUnavailable, mostBytes)
	case res.StatusCode >= http.StatusInternalServerError:
		return nil, true, fmt.Errorf("%w: it answered %s", ErrUnavailable, res.Status)
	case res.StatusCode == http.StatusTooManyRequests, req.Method == http.MethodGet && res.StatusCode != http.StatusOK:
		return nil, false, fmt.Errorf("%w: it answered %s", ErrUnavailable, res.Status)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, false, nil
}
