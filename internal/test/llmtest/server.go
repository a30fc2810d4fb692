// Package llmtest is a real server of the OpenAI protocol for tests, over HTTP on loopback. It follows a script of responses and faults.
//
//	server := llmtest.New(t, llmtest.TooMany("0"), llmtest.Says(`{"entries": []}`))
//	client, err := llm.New(llm.Config{BaseURL: server.URL, Model: "m"})
package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Request is a client's request.
type Request struct {
	Path           string
	Key            string // key in the Authorization header
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

// Silent reads the request and never responds.
var Silent Reply

// Says returns a response with a text.
func Says(text string) Reply { return message(map[string]any{"content": text}, "stop") }

// SaysInParts returns a response with a text in parts.
func SaysInParts(texts ...string) Reply {
	parts := make([]any, len(texts))
	for i, text := range texts {
		parts[i] = map[string]any{"type": "text", "text": text}
	}
	return message(map[string]any{"content": parts}, "stop")
}

// Cuts returns a response with the beginning of a text.
func Cuts(text string) Reply { return message(map[string]any{"content": text}, "length") }

// Refuses returns a response with a refusal.
func Refuses() Reply {
	return message(map[string]any{"content": nil, "refusal": "I cannot help with that."}, "stop")
}

// Filters returns an empty response of a content filter.
func Filters() Reply { return message(map[string]any{"content": ""}, "content_filter") }

// Call is a model's call of a tool.
type Call struct {
	ID        string // empty: the server omits it
	Name      string
	Arguments string // JSON
	Object    bool   // the arguments are sent as an object, not as a string
}

// Calls returns a response with calls of tools.
func Calls(calls ...Call) Reply {
	sent := make([]any, len(calls))
	for i, c := range calls {
		function := map[string]any{"name": c.Name, "arguments": c.Arguments}
		if c.Object {
			function["arguments"] = json.RawMessage(c.Arguments)
		}
		call := map[string]any{"type": "function", "function": function}
		if c.ID != "" {
			call["id"] = c.ID
		}
		sent[i] = call
	}
	return message(map[string]any{"content": nil, "tool_calls": sent}, "tool_calls")
}

func message(m map[string]any, finished string) Reply {
	m["role"] = "assistant"
	text, err := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": finished}}, "usage": map[string]any{"total_tokens": 42},
	})
	if err != nil {
		panic(fmt.Sprintf("llmtest: encode an answer: %v", err))
	}
	return Raw("application/json", string(text))
}

// Fails returns a response with a status and an error that names a parameter, "" for none.
func Fails(status int, code, param string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, asked Request) {
		e := map[string]any{"message": "it failed for " + asked.Key, "type": "invalid_request_error", "code": code, "param": nil}
		if param != "" {
			e["param"] = param
		}
		text, _ := json.Marshal(map[string]any{"error": e})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}
}

// TooMany returns a response with status 429 and this Retry-After, in seconds.
func TooMany(after string) Reply {
	return func(w http.ResponseWriter, r *http.Request, asked Request) {
		w.Header().Set("Retry-After", after)
		Fails(http.StatusTooManyRequests, "rate_limit_exceeded", "")(w, r, asked)
	}
}

// Raw returns a response with status 200 and a body.
func Raw(contentType, body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, _ Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// HangsUp closes the connection without a response.
func HangsUp(http.ResponseWriter, *http.Request, Request) { panic(http.ErrAbortHandler) }

// BreaksOff closes the connection in the middle of a response.
func BreaksOff(w http.ResponseWriter, _ *http.Request, _ Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"message":{"con`)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
