// Package remote has the client of the running server, for the commands that need one.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"bahi/internal/app"
)

// Server identifies the running server, and the operator to it.
type Server struct {
	Data string `env:"BAHI_DATA" default:"./data" help:"Data folder of the server, which has its address and the operator's key."`
	Addr string `env:"BAHI_ADDR" placeholder:"ADDRESS" help:"Address of the server's HTTP. Without it, the address in the data folder."`
	Key  string `env:"BAHI_ADMIN_API_KEY" name:"admin-api-key" placeholder:"KEY" help:"API key of the operator. Without it, the key in the data folder."`

	Shell app.Shell `kong:"-"`
}

// AfterApply implements kong's interface.
func (s *Server) AfterApply(sh app.Shell) error {
	s.Shell = sh
	return nil
}

// direct calls no proxy: the server is on this machine or in its network.
var direct = &http.Client{Transport: &http.Transport{}}

// Request is a request to the server.
type Request struct {
	Method, Path string
	Body         any               // sent as JSON, unless nil
	Header       map[string]string // further headers, except those with an empty value
}

// Do sends a request and decodes the response into a value, unless that is nil. An error of the server has its detail.
func (s Server) Do(ctx context.Context, r Request, into any) error {
	answer, err := s.Open(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // the body was read
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("read the response to %s %s: %w", r.Method, r.Path, err)
	}
	return nil
}

// Post sends a body, and prints the result.
func (s Server) Post(ctx context.Context, path string, body any, done string) error {
	err := s.Do(ctx, Request{Method: "POST", Path: path, Body: body}, nil)
	if err == nil {
		fmt.Fprintln(s.Shell.Out, done)
	}
	return err
}

// Print prints a resource.
func (s Server) Print(ctx context.Context, path string, out io.Writer) error {
	answer, err := s.Open(ctx, Request{Method: "GET", Path: path})
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // the body was read
	if answer.Header.Get("Warning") != "" {
		fmt.Fprintf(s.Shell.Err, "The server's tables end at position %s, and so does this.\n", answer.Header.Get("Bahi-Position"))
	}
	_, err = io.Copy(out, answer.Body)
	return err
}

// Open is Do for a caller that reads and closes the response.
func (s Server) Open(ctx context.Context, r Request) (*http.Response, error) {
	addr, err := app.ServerAddr(ctx, s.Data, s.Addr)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(s.Data, "keys", "admin.key"))
	if err != nil && s.Key == "" && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the operator's key: %w", err)
	}
	var body bytes.Buffer
	if r.Body != nil {
		if err := json.NewEncoder(&body).Encode(r.Body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, "http://"+addr+r.Path, &body)
	if err != nil {
		return nil, fmt.Errorf("BAHI_ADDR: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if key := cmp.Or(s.Key, strings.TrimSpace(string(text))); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range r.Header {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	answer, err := direct.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the server does not respond: %w", err)
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close() //nolint:errcheck // the body was read
	return nil, refusal(answer)
}

// refusal returns the server's reason for refusing a request.
func refusal(answer *http.Response) error {
	var problem struct {
		Detail string `json:"detail"`
		Errors []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // without the text, the status suffices
	if err := json.Unmarshal(text, &problem); err != nil || problem.Detail == "" {
		return fmt.Errorf("the server responds %s", answer.Status)
	}
	for _, e := range problem.Errors {
		problem.Detail += "; " + e.Field + ": " + e.Message
	}
	return errors.New(problem.Detail)
}
