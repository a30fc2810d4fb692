package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/google/uuid"
)

// client sends requests to the operations of the interface without a network. So all their checks apply.
type client struct {
	handler http.Handler
	key     string
}

const (
	// pressed is the delay of a retry after status 503. The idempotency key prevents a second effect.
	pressed = 100 * time.Millisecond

	// patience is the maximum time of a request's retries.
	patience = 5 * time.Minute
)

// call sends a request and decodes the response into into, unless that is nil. headers has names and values by turns.
func (c *client) call(ctx context.Context, method, path, body string, into any, headers ...string) error {
	for key, began := uuid.NewString(), time.Now(); ; {
		request, err := http.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.RemoteAddr = "127.0.0.1:1"
		request.Header.Set("Authorization", "Bearer "+c.key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1]) //nolint:gosec // G602: they come in pairs
		}
		a := httptest.NewRecorder()
		c.handler.ServeHTTP(a, request)
		switch {
		case a.Code == http.StatusServiceUnavailable && time.Since(began) < patience:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pressed):
			}
			continue
		case a.Code/100 != 2:
			return fmt.Errorf("%s %s returned %d: %s", method, path, a.Code, a.Body.Bytes())
		case into == nil:
			return nil
		}
		if err := json.Unmarshal(a.Body.Bytes(), into); err != nil {
			return fmt.Errorf("read the response to %s %s: %w", method, path, err)
		}
		return nil
	}
}

// create posts a record and returns its id.
func (c *client) create(ctx context.Context, path string, body map[string]any) (id int64, err error) {
	var made struct {
		ID int64 `json:"id"`
	}
	err = c.send(ctx, "POST", path, body, &made)
	return made.ID, err
}

// send is call with a JSON object as its body.
func (c *client) send(ctx context.Context, method, path string, body map[string]any, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.call(ctx, method, path, string(text), into)
}

// upload posts a file.
func (c *client) upload(ctx context.Context, path, name, content string) error {
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	file, err := parts.CreateFormFile("file", name)
	if err != nil {
		return err
	}
	_, _ = file.Write([]byte(content)) // into memory
	if err := parts.Close(); err != nil {
		return err
	}
	return c.call(ctx, "POST", path, form.String(), nil, "Content-Type", parts.FormDataContentType())
}
