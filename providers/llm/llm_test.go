package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/khatapages"
	"bahi/internal/test/llmtest"
	"bahi/providers/llm"
)

type order struct {
	Entries []struct {
		Item   string       `json:"item_name"`
		Weight *json.Number `json:"weight"`
	} `json:"entries"`
}

const (
	good = `{"entries": [{"item_name": "payal", "weight": 250.125}]}`
	key  = "secret-key-7f3a"
)

func asking(t *testing.T, s *llmtest.Server, change ...func(*llm.Config)) *llm.Client {
	t.Helper()
	config := llm.Config{
		BaseURL: s.URL, Key: key, Model: "m", VisionModel: "v", EmbeddingModel: "e", Timeout: time.Minute, LongestPause: time.Millisecond,
		Rest: time.Hour,
	}
	for _, c := range change {
		c(&config)
	}
	client, err := llm.New(config)
	require.NoError(t, err)
	return client
}

func extract(ctx context.Context, c *llm.Client) (order, error) {
	return llm.Extract(ctx, c, llm.Question{Rules: "Read the order.", Data: "payal 250 gm"}, func(o order) error {
		if len(o.Entries) > 1 {
			return errors.New("too many entries")
		}
		return nil
	})
}

// impatient waits as long as a busy machine may take to reach the server.
func impatient(c *llm.Config) { c.Timeout = 3 * time.Second }

func TestValueIsReadFromWhateverAServerSends(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]llmtest.Reply{
		"an object":                         {llmtest.Says(good)},
		"in parts":                          {llmtest.SaysInParts(good[:20], good[20:])},
		"in a fence":                        {llmtest.Says("Here it is:\n```json\n" + good + "\n```\nAnything else?")},
		"after a thought with objects":      {llmtest.Says(`<think>{"entries": "?"} {broken</think>` + good)},
		"as text that is no JSON by header": {llmtest.Raw("text/plain", `{"choices":[{"message":{"content":`+fmt.Sprintf("%q", good)+`}}]}`)},
		"without a schema":                  {withoutSchemas(nil), withoutSchemas(llmtest.Says(good))},
		"without JSON": {withoutJSON(nil), withoutJSON(nil),
			withoutJSON(llmtest.Says("Sure. " + good))},
		"after a plain text refused":        {failsWith(400, "what is response_format?"), llmtest.Says(good)},
		"after an error that is a text":     {failsWith(422, `{"error":"json_schema"}`), llmtest.Says(good)},
		"from a newer model":                {newerModel(nil), newerModel(nil), newerModel(llmtest.Says(good))},
		"after 429":                         {llmtest.TooMany("0"), llmtest.Says(good)},
		"after 500 and 503":                 {llmtest.Fails(500, "", ""), failsWith(503, "<html>"), llmtest.Says(good)},
		"after a connection that hung up":   {llmtest.HangsUp, llmtest.Says(good)},
		"when asked again for a wrong type": {llmtest.Says(`{"entries": [{"item_name": "payal", "weight": "250"}]}`), llmtest.Says(good)},
		"when asked again for a wrong value": {llmtest.Says(`{"entries": [{"item_name":"a","weight":1},{"item_name":"b","weight":2}]}`),
			llmtest.Says(good)},
		"when asked again for truncation":  {llmtest.Says(good[:30]), llmtest.Says(good)},
		"when asked again for null":        {llmtest.Says(`{"entries": null}`), llmtest.Says(good)},
		"when asked again for more fields": {llmtest.Says(`{"entries": [], "sql": "drop table"}`), llmtest.Says(good)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t, script...)
			o, err := extract(t.Context(), asking(t, s))
			require.NoError(t, err)
			require.Equal(t, "payal", o.Entries[0].Item)
			require.Equal(t, "250.125", o.Entries[0].Weight.String())
			require.Len(t, s.Asked(), len(script))
			for _, r := range s.Asked() {
				require.Equal(t, []string{"/v1/chat/completions", "Bearer " + key, "m"}, []string{r.Path, r.Key, r.Model})
			}
		})
	}
}

func TestServerThatMisbehavesIsAnErrorWithoutItsWords(t *testing.T) {
	t.Parallel()
	answer := func(content string) llmtest.Reply { return llmtest.Raw("application/json", content) }
	for why, c := range map[string]struct {
		reply  llmtest.Reply
		asked  int
		change func(*llm.Config)
	}{
		"refused to answer":                               {reply: llmtest.Refuses(), asked: 1},
		"refused to answer.":                              {reply: llmtest.Filters(), asked: 1},
		"truncated its answer":                            {reply: llmtest.Cuts(good[:25]), asked: 1},
		"sent an empty answer":                            {reply: llmtest.Says("  \n"), asked: 1},
		"sent a value that cannot be used":                {reply: llmtest.Says(strings.Repeat(`{"a":`, 1000)), asked: 2},
		"sent a value that cannot be used.":               {reply: llmtest.Says("I would rather talk about poetry."), asked: 2},
		"sent an unreadable response":                     {reply: answer(`{"choices":[]}`), asked: 1},
		"sent an unreadable response.":                    {reply: answer(`{"choices":[{"message":`), asked: 1},
		"sent an unreadable response..":                   {reply: answer(`[]`), asked: 1},
		"sent an unreadable response...":                  {reply: llmtest.Raw("text/html", "<html>Sign in to the network</html>"), asked: 1},
		"sent an unreadable response....":                 {reply: answer(`{"error":{"message":"overloaded"}}`), asked: 1},
		"refused (status 401), code bad_key":              {reply: llmtest.Fails(401, "bad_key", ""), asked: 1},
		"refused (status 401)":                            {reply: llmtest.Fails(401, key, key), asked: 1},
		"refused (status 404)":                            {reply: failsWith(404, "no such model: "+key), asked: 1},
		"refused (status 400), param messages":            {reply: llmtest.Fails(400, "", "messages"), asked: 1},
		"refused (status 400), param temperature":         {reply: llmtest.Fails(400, "", "temperature"), asked: 2},
		"refused (status 307)":                            {reply: redirects("http://127.0.0.1:1/"), asked: 1},
		"refused (status 429), code rate_limit_exceeded":  {reply: llmtest.TooMany("0"), asked: 3},
		"refused (status 429), code rate_limit_exceeded.": {reply: llmtest.TooMany("3600"), asked: 1},
		"refused (status 500)":                            {reply: failsWith(500, "{"), asked: 3},
		"sent an answer that is too long":                 {reply: huge(2 << 20), asked: 1},
		"ended its response early, or sent too much":      {reply: huge(64 << 20), asked: 1},
		"ended its response early, or sent too much.":     {reply: llmtest.BreaksOff, asked: 1},
		"did not respond":                                 {reply: llmtest.HangsUp, asked: 3},
		"did not respond.":                                {reply: llmtest.Silent, asked: 1, change: impatient},
		"ended its response early, or sent too much..":    {reply: trickles, asked: 1, change: impatient},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Always(c.reply)
			if c.change == nil {
				c.change = func(*llm.Config) {}
			}
			_, err := extract(t.Context(), asking(t, s, c.change))
			e, told := errors.AsType[*llm.Error](err)
			require.True(t, told, "%v", err)
			require.Contains(t, e.Error(), strings.TrimRight(why, "."))
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, e, e), key)
			require.Len(t, s.Asked(), c.asked)
		})
	}
}

func TestFormThatAServerTakesIsRemembered(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Always(withoutSchemas(newerModel(llmtest.Says(good))))
	c := asking(t, s)
	for range 2 {
		_, err := extract(t.Context(), c)
		require.NoError(t, err)
	}
	var formats []string
	for _, r := range s.Asked() {
		formats = append(formats, r.ResponseFormat.Type)
	}
	require.Equal(t, []string{"json_schema", "json_object", "json_object", "json_object", "json_object"}, formats)
	last := s.Asked()[4]
	require.Contains(t, last.Messages[0].Text(), `"item_name"`, "without a schema, the prompt has it")
	require.Nil(t, last.Temperature)
	require.Equal(t, int64(4096), *last.NewMaxTokens)
}

func TestDataIsBetweenMarksThatNobodyCanGuess(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Always(llmtest.Says(good))
	c := asking(t, s)
	for range 2 {
		_, err := extract(t.Context(), c)
		require.NoError(t, err)
	}
	marks := map[string]bool{}
	for _, r := range s.Asked() {
		require.Equal(t, []string{"system", "user"}, []string{r.Messages[0].Role, r.Messages[1].Role})
		mark, _, _ := strings.Cut(r.Messages[1].Text(), "\n")
		require.Equal(t, mark+"\npayal 250 gm\n"+mark, r.Messages[1].Text())
		require.Contains(t, r.Messages[0].Text(), mark)
		require.NotContains(t, r.Messages[0].Text(), "payal")
		marks[mark] = true
	}
	require.Len(t, marks, 2)
}

func TestServerThatFailsOftenIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Always(llmtest.HangsUp)
	c := asking(t, s)
	for range 5 {
		_, err := extract(t.Context(), c)
		require.ErrorContains(t, err, "did not respond")
	}
	_, err := extract(t.Context(), c)
	require.ErrorContains(t, err, "was not called, because it failed too often")
	require.Len(t, s.Asked(), 15)

	s.Always(llmtest.Says(good))
	c = asking(t, s, func(c *llm.Config) { c.Rest = time.Nanosecond })
	s.Then(llmtest.Fails(401, "", ""), llmtest.Fails(401, "", ""), llmtest.Fails(401, "", ""), llmtest.Fails(401, "", ""),
		llmtest.Fails(401, "", ""))
	for range 5 {
		_, err := extract(t.Context(), c)
		require.Error(t, err)
	}
	_, err = extract(t.Context(), c)
	require.NoError(t, err, "a refusal says nothing about the server")
}

func TestCallerWhoLeavesSaysNothingAboutTheServer(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Always(llmtest.Silent)
	c := asking(t, s)
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := extract(ctx, c)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	s.Always(llmtest.Says(good))
	_, err := extract(t.Context(), c)
	require.NoError(t, err)
}

func TestTalkWithTools(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t,
		llmtest.Calls(llmtest.Call{ID: "a", Name: "search", Arguments: `{"q":"payal"}`},
			llmtest.Call{Name: "search", Arguments: `{"q":"ring"}`, Object: true},
			llmtest.Call{Name: "broken", Arguments: `{"q":`}, llmtest.Call{Name: "none", Arguments: ""}),
		llmtest.Says("Both are in stock."))
	c := asking(t, s)
	tools := []llm.Tool{{Name: "search", Description: "Searches.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}}
	talk := []llm.Message{{Role: llm.System, Text: "Be brief."}, {Role: llm.User, Text: "payal, ring?"}}
	a, err := c.Chat(t.Context(), talk, tools)
	require.NoError(t, err)
	require.Equal(t, []llm.ToolCall{
		{ID: "a", Name: "search", Arguments: json.RawMessage(`{"q":"payal"}`)},
		{ID: "call_1", Name: "search", Arguments: json.RawMessage(`{"q":"ring"}`)},
		{ID: "call_2", Name: "broken"}, {ID: "call_3", Name: "none", Arguments: json.RawMessage(`{}`)},
	}, a.Calls)
	require.Equal(t, int64(42), a.Tokens)
	talk = append(talk, llm.Message{Role: llm.Assistant, Calls: a.Calls})
	for _, call := range a.Calls {
		talk = append(talk, llm.Message{Role: llm.ToolSays, CallID: call.ID, Text: "in stock"})
	}
	a, err = c.Chat(t.Context(), talk, tools)
	require.NoError(t, err)
	require.Equal(t, "Both are in stock.", a.Text)
	second := s.Asked()[1]
	require.Len(t, second.Messages[2].ToolCalls, 4)
	require.JSONEq(t, `{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\"q\":\"ring\"}"}}`,
		string(second.Messages[2].ToolCalls[1]))
	require.Equal(t, []string{"tool", "call_3", "in stock"},
		[]string{second.Messages[6].Role, second.Messages[6].ToolCallID, second.Messages[6].Text()})
	require.JSONEq(t, `{"type":"function","function":{"name":"search","description":"Searches.","parameters":{"type":"object",`+
		`"properties":{"q":{"type":"string"}}}}}`,
		string(second.Tools[0]))
}

func TestVectors(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Always(vectors(3))
	texts := make([]string, 130)
	for i := range texts {
		texts[i] = strings.Repeat("a", i+1)
	}
	vectors, err := asking(t, s).Embed(t.Context(), texts)
	require.NoError(t, err)
	require.Len(t, vectors, len(texts))
	for i, v := range vectors {
		require.Equal(t, []float32{float32(i + 1), float32(i + 1), float32(i + 1)}, v)
	}
	require.Equal(t, []int{64, 64, 2}, []int{len(s.Asked()[0].Input), len(s.Asked()[1].Input), len(s.Asked()[2].Input)})
	for _, broken := range []string{
		`{"data":[{"embedding":[1]}]}`, `{"data":[{"embedding":[1]},{"embedding":[1,2]}]}`,
		`{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[2]}]}`,
		`{"data":[{"index":5,"embedding":[1]},{"embedding":[1]}]}`, `{"data":[{"embedding":[]},{"embedding":[]}]}`, `{"data":"none"}`,
	} {
		s := llmtest.New(t, llmtest.Raw("application/json", broken))
		_, err := asking(t, s).Embed(t.Context(), []string{"a", "b"})
		require.ErrorContains(t, err, "sent no vectors that can be read", broken)
	}
}

func TestPictureIsMadeSmallForTheVisionModel(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 4000, 1000))))
	picture, err := llm.Picture(file.Bytes())
	require.NoError(t, err)
	size, kind, err := image.DecodeConfig(bytes.NewReader(picture.Data))
	require.NoError(t, err)
	require.Equal(t, []any{2000, 500, "jpeg"}, []any{size.Width, size.Height, kind})
	for _, broken := range [][]byte{nil, []byte("%PDF-1.7"), file.Bytes()[:40], file.Bytes()[:len(file.Bytes())/2]} {
		_, err := llm.Picture(broken)
		require.ErrorIs(t, err, llm.ErrNoPicture)
	}

	sideways := image.NewGray(image.Rect(0, 0, 40, 20)) // its left half is white; upright, this half is at the top
	for y := range 20 {
		for x := range 20 {
			sideways.Pix[y*sideways.Stride+x] = 255
		}
	}
	file.Reset()
	require.NoError(t, jpeg.Encode(&file, sideways, nil))
	upright, err := llm.Picture(khatapages.Photo(file.Bytes(), 6))
	require.NoError(t, err)
	seen, err := jpeg.Decode(bytes.NewReader(upright.Data))
	require.NoError(t, err)
	require.Equal(t, image.Pt(20, 40), seen.Bounds().Size())
	bright := func(x, y int) bool { red, _, _, _ := seen.At(x, y).RGBA(); return red > 0x8000 }
	require.Equal(t, []bool{true, true, false, false}, []bool{bright(2, 5), bright(17, 5), bright(2, 35), bright(17, 35)})

	s := llmtest.New(t, llmtest.Says(good))
	_, err = llm.Extract(t.Context(), asking(t, s), llm.Question{Rules: "Read.", Data: "a caption", Images: []llm.Image{picture}},
		func(order) error { return nil })
	require.NoError(t, err)
	asked := s.Asked()[0]
	require.Equal(t, "v", asked.Model)
	require.Contains(t, string(asked.Messages[1].Content), `"url":"data:image/jpeg;base64,/9j/`)
}

func TestWhatIsNotConfiguredIsNotAsked(t *testing.T) {
	t.Parallel()
	none, err := llm.New(llm.Config{})
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, []bool{false, false}, []bool{none.Chats(), none.Sees()})
	require.Empty(t, none.Embeds())
	_, err = extract(t.Context(), none)
	require.ErrorIs(t, err, llm.ErrNoModel)
	_, err = none.Chat(t.Context(), nil, nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
	_, err = none.Embed(t.Context(), []string{"a"})
	require.ErrorIs(t, err, llm.ErrNoModel)
	for _, wrong := range []llm.Config{
		{Model: "m"}, {BaseURL: "http://127.0.0.1/v1"}, {BaseURL: "ftp://127.0.0.1/v1", Model: "m"},
		{BaseURL: "http://user:secret@127.0.0.1/v1", Model: "m"},
		{BaseURL: "::", Model: "m"}, {BaseURL: "http://127.0.0.1/v1", Model: "m", Timeout: -1},
	} {
		_, err := llm.New(wrong)
		require.Error(t, err, "%+v", wrong)
		require.NotContains(t, err.Error(), "secret")
	}
}
