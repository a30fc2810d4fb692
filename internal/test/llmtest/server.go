// Package llmtest is a real server of the OpenAI protocol for tests, over HTTP on loopback. It follows a script of responses and faults.
//
//	server := llmtest.New(t, llmtest.TooMany("0"), llmtest.Says(`{"entries": []}`))
//	client, err := llm.New(llm.Config{BaseURL: server.URL, Model: "m"})
package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Request is a client's request.
type Request struct {
	Path           string
	Key            string // of the Authorization header
	Model          string `json:"model"`
	Messages       []Message
	Tools          []json.RawMessage `json:"tools"`
	Input          []string          `json:"input"`
	Temperature    *float64          `json:"temperature"`
	MaxTokens      *int64            `json:"max_tokens"`
	NewMaxTokens   *int64            `json:"max_completion_tokens"`
	ResponseFormat struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

// Message is a message of a request.
type Message struct {
	Role       string            `json:"role"`
	Content    json.RawMessage   `json:"content"`
	ToolCallID string            `json:"tool_call_id"`
	ToolCalls  []json.RawMessage `json:"tool_calls"`
}

// Text returns the text of the message.
func (m Message) Text() (text string) {
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// Reply writes a response to a request.
type Reply func(w http.ResponseWriter, r *http.Request, asked Request)

// Server is the server.
type Server struct {
	URL string

	ended  chan struct{} // closed when the test ends
	mu     sync.Mutex
	script []Reply
	always Reply
	asked  []Request
}

// New starts a server with the responses to its first requests, and stops it when the test ends. Further requests fail with status 500,
// unless [Server.Always] sets a response.
func New(t testing.TB, script ...Reply) *Server {
	s := &Server{ended: make(chan struct{}), script: script, always: Fails(http.StatusInternalServerError, "nothing_scripted", "")}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = server.URL + "/v1"
	t.Cleanup(func() {
		close(s.ended)
		server.Close()
	})
	return s
}

// Then adds responses to the script.
func (s *Server) Then(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Always sets the response after the script's end.
func (s *Server) Always(reply Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = reply
}

// Asked returns the requests so far.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asked...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	asked := Request{Path: r.URL.Path, Key: r.Header.Get("Authorization")}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, asked)
	reply := s.always
	if len(s.script) > 0 {
		reply, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if reply == nil { // silent
		select {
		case <-r.Context().Done():
		case <-s.ended:
		}
		return
	}
	reply(w, r, asked)
}
