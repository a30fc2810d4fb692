package llm_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"bahi/internal/test/llmtest"
)

// vectors returns a response with a vector for each text; the last text's comes first.
func vectors(length int) llmtest.Reply {
	return func(w http.ResponseWriter, r *http.Request, asked llmtest.Request) {
		var data []string
		for i := range slices.Backward(asked.Input) {
			vector := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d,", len(asked.Input[i])), length), ",")
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%s]}`, i, vector))
		}
		llmtest.Raw("application/json", `{"data":[`+strings.Join(data, ",")+`]}`)(w, r, asked)
	}
}

// failsWith returns a response with a status and a body.
func failsWith(status int, body string) llmtest.Reply {
	return func(w http.ResponseWriter, _ *http.Request, _ llmtest.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// redirects sends the client to an address.
func redirects(to string) llmtest.Reply {
	return func(w http.ResponseWriter, r *http.Request, _ llmtest.Request) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}
}

// huge returns a response with a text of so many bytes, which are few on the wire.
func huge(bytes int) llmtest.Reply {
	return func(w http.ResponseWriter, _ *http.Request, _ llmtest.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, `{"choices":[{"finish_reason":"stop","message":{"content":"`)
		zeros := strings.Repeat("0", 1<<16)
		for sent := 0; sent < bytes; sent += len(zeros) {
			if _, err := io.WriteString(packed, zeros); err != nil {
				return
			}
		}
		_, _ = io.WriteString(packed, `"}}]}`)
		_ = packed.Close()
	}
}

// trickles sends the beginning of a response, and never the rest.
func trickles(w http.ResponseWriter, r *http.Request, _ llmtest.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[`)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// withoutSchemas refuses requests with a schema for the answer, and passes others to reply.
func withoutSchemas(reply llmtest.Reply) llmtest.Reply { return without("json_schema", reply) }

// withoutJSON refuses requests for JSON of any kind, and passes others to reply.
func withoutJSON(reply llmtest.Reply) llmtest.Reply { return without("json_schema json_object", reply) }

func without(formats string, reply llmtest.Reply) llmtest.Reply {
	return func(w http.ResponseWriter, r *http.Request, asked llmtest.Request) {
		if f := asked.ResponseFormat.Type; f != "" && strings.Contains(formats, f) {
			llmtest.Fails(http.StatusBadRequest, "unsupported_value", "response_format")(w, r, asked)
			return
		}
		reply(w, r, asked)
	}
}

// newerModel refuses the parameters of older models, and passes other requests to reply.
func newerModel(reply llmtest.Reply) llmtest.Reply {
	return func(w http.ResponseWriter, r *http.Request, asked llmtest.Request) {
		switch {
		case asked.Temperature != nil:
			llmtest.Fails(http.StatusBadRequest, "unsupported_value", "temperature")(w, r, asked)
		case asked.MaxTokens != nil:
			llmtest.Fails(http.StatusBadRequest, "unsupported_parameter", "max_tokens")(w, r, asked)
		default:
			reply(w, r, asked)
		}
	}
}
