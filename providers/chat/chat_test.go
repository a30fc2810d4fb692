package chat_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
	"bahi/internal/test/worktest"
	"bahi/providers/chat"
	"bahi/providers/egress"
)

const (
	token     = "777:s3cret-token"
	phone     = "919812345678"
	nobody    = "919812345000"
	picture   = "https://cdn.example.org/a.jpg"
	throttled = "919812345429"
	busy      = "919812345503" // the first call about it fails, and another may succeed
)

// dialect is a wire format: the account that uses it, and a server of ours for it.
type dialect struct {
	account  network.Account
	identity string                          // identity in the response to a health check
	silent   bool                            // its health is only an identity
	sent     func(*http.Request) (to string) // checks a request to send, and returns its recipient
	accepts  func(nth int64) string
	refuses  map[string]string // responses by the failure that they mean: status, space, body
	image    func(*testing.T, *http.Request, []byte)
	uploads  bool // images, which it requires before the message
}

func bearer(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }

func field(body []byte, name string) string {
	var all map[string]any
	_ = json.Unmarshal(body, &all)
	text, _ := all[name].(string)
	return text
}

func bodyOf(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return body
}

var dialects = map[string]dialect{
	"cloud": {
		account: network.Account{Type: "chat", SenderID: "PN1", APIKey: token}, identity: "PN1",
		sent: func(r *http.Request) string {
			if r.URL.Path != "/PN1/messages" || !bearer(r) {
				return ""
			}
			return field(bodyOf(r), "to")
		},
		accepts: func(nth int64) string {
			return fmt.Sprintf(`{"contacts":[{"wa_id":"9"}],"messages":[{"id":"wamid.%d"}]}`, nth)
		},
		refuses: map[string]string{
			"token":     `401 {"error":{"message":"bad ` + token + `","code":190}}`,
			"recipient": `400 {"error":{"message":"(#131026) Message undeliverable","code":131026,"error_data":{"details":"not on the network"}}}`,
			"throttled": `400 {"error":{"message":"slow","code":"131056"}}`, "temporary": `500 {"error":{"message":"x","code":131000}}`,
		},
		image: func(t *testing.T, _ *http.Request, body []byte) {
			require.JSONEq(t, `{"messaging_product":"chat-network","recipient_type":"individual","to":"919812345678","type":"image",
				"image":{"link":"https://cdn.example.org/a.jpg","caption":"Sample"},"biz_opaque_callback_data":"msg_8"}`, string(body))
		},
	},
	"gateway": {
		account:  network.Account{Type: "chat", Dialect: "envelope_v2", SenderID: "917", AppName: "Workshop", APIKey: token},
		identity: "app:Workshop", silent: true,
		sent: func(r *http.Request) string {
			if r.URL.Path != "/wa/api/v1/msg" || r.Header.Get("Apikey") != token {
				return ""
			}
			form, _ := url.ParseQuery(string(bodyOf(r)))
			return form.Get("destination")
		},
		accepts: func(nth int64) string { return fmt.Sprintf(`{"status":"submitted","messageId":"ee-%d"}`, nth) },
		refuses: map[string]string{
			"token": `401 {"status":"error","message":"no app of ` + token + `"}`, "recipient": "",
			"throttled": `429 {"status":"error","message":"Too Many Requests"}`, "temporary": "",
		},
		image: func(t *testing.T, _ *http.Request, body []byte) {
			form, err := url.ParseQuery(string(body))
			require.NoError(t, err)
			require.Equal(t, []string{"chat-network", "917", "Workshop"}, []string{form.Get("channel"), form.Get("source"), form.Get("src.name")})
			require.JSONEq(t, `{"type":"image","originalUrl":"https://cdn.example.org/a.jpg","previewUrl":"https://cdn.example.org/a.jpg",`+
				`"caption":"Sample"}`, form.Get("message"))
		},
	},
	"telegram": {
		account: network.Account{Type: "telegram", APIKey: token}, identity: "777",
		sent: func(r *http.Request) string {
			if !strings.HasPrefix(r.URL.Path, "/bot"+token+"/send") {
				return ""
			}
			return field(bodyOf(r), "chat_id")
		},
		accepts: func(nth int64) string { return fmt.Sprintf(`{"ok":true,"result":{"message_id":%d,"id":777}}`, nth) },
		refuses: map[string]string{
			"token": `401 {"ok":false,"error_code":401,"description":"Unauthorized ` + token + `"}`, "recipient": `403 {"ok":false,` +
				`"error_code":403,"description":"Forbidden: bot was blocked by the user"}`,
			"throttled": `429 {"ok":false,"error_code":429,"description":"slow","parameters":{"retry_after":6}}`,
			"temporary": `502 {"ok":false,"error_code":502,"description":"Bad Gateway"}`,
		},
		image: func(t *testing.T, r *http.Request, body []byte) {
			require.Equal(t, "/bot"+token+"/sendPhoto", r.URL.Path)
			require.JSONEq(t, `{"chat_id":"919812345678","photo":"https://cdn.example.org/a.jpg","caption":"Sample"}`, string(body))
		},
	},
	"gmail": {
		account: network.Account{Type: "gmail", AccessToken: token},
		sent: func(r *http.Request) string {
			if r.URL.Path != "/gmail/v1/users/me/messages/send" || !bearer(r) {
				return ""
			}
			return strings.TrimSuffix(between(letter(bodyOf(r)), "\nTo: <", ">"), "@example.org")
		},
		accepts: func(nth int64) string { return fmt.Sprintf(`{"id":"g%d","threadId":"t"}`, nth) },
		refuses: map[string]string{
			"token": `401 {"error":{"code":401,"message":"Invalid ` + token + `"}}`, "recipient": "",
			"throttled": `403 {"error":{"code":403,"message":"x","errors":[{"reason":"userRateLimitExceeded"}]}}`,
			"temporary": `503 {"error":{"code":503,"message":"later"}}`,
		},
		image: func(t *testing.T, _ *http.Request, body []byte) {
			require.Contains(t, letter(body), "Subject: Order")
			require.Contains(t, letter(body), "Sample\r\n\r\nhttps://cdn.example.org/a.jpg")
		},
	},
	"twitter": {
		account: network.Account{Type: "twitter", AccessToken: token}, identity: "42",
		sent: func(r *http.Request) string {
			if !bearer(r) {
				return ""
			}
			return between(r.URL.Path, "/2/dm_conversations/with/", "/messages")
		},
		accepts: func(nth int64) string { return fmt.Sprintf(`{"data":{"dm_event_id":"e%d","id":"42"}}`, nth) },
		refuses: map[string]string{
			"token":     `401 {"title":"Unauthorized","detail":"` + token + `","status":401}`,
			"recipient": `403 {"title":"Forbidden","detail":"cannot be messaged","status":403}`,
			"throttled": `429 {"title":"Too Many Requests","status":429}`, "temporary": `503 {"title":"Service Unavailable","status":503}`,
		},
		image: func(t *testing.T, _ *http.Request, body []byte) {
			require.JSONEq(t, `{"text":"Sample","attachments":[{"media_id":"1880"}]}`, string(body))
		},
		uploads: true,
	},
}

// pixelAt is where a server has an image.
const pixelAt = "/a.png"

var pixel = []byte("\x89PNG\r\n\x1a\n and what follows")

// uploaded reports whether a form uploads the image for a direct message.
func uploaded(contentType string, body []byte) bool {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
	if err != nil || len(form.File["media"]) != 1 {
		return false
	}
	file, err := form.File["media"][0].Open()
	if err != nil {
		return false
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	return err == nil && bytes.Equal(content, pixel) && slices.Equal(form.Value["media_category"], []string{"dm_image"}) &&
		slices.Equal(form.Value["media_type"], []string{"image/png"})
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

func letter(body []byte) string {
	raw, _ := base64.URLEncoding.DecodeString(field(body, "raw"))
	return string(raw)
}

// served starts a server of the dialect, and returns networks that call it.
func (d dialect) served(t *testing.T, seen func(*http.Request, []byte)) *chat.Networks {
	t.Helper()
	var calls atomic.Int64
	return networks(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(r)
		if seen != nil {
			seen(r, body)
		}
		say := func(answer string) {
			status, text, _ := strings.Cut(answer, " ")
			code, _ := strconv.Atoi(status)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
		if r.URL.Path == pixelAt && r.Header.Get("Authorization") == "" {
			_, _ = w.Write(pixel)
			return
		}
		if r.URL.Path == "/2/media/upload" && bearer(r) && uploaded(r.Header.Get("Content-Type"), body) {
			_, _ = io.WriteString(w, `{"data":{"id":"1880","media_key":"5_1880","expires_after_secs":86400}}`)
			return
		}
		nth := calls.Add(1)
		if r.Method == http.MethodGet {
			if r.Header.Get("Apikey") == token {
				_, _ = io.WriteString(w, `{"status":"success","templates":[]}`)
				return
			}
			if !bearer(r) && !strings.Contains(r.URL.Path, token) {
				say(d.refuses["token"])
				return
			}
			_, _ = io.WriteString(w, strings.Replace(d.accepts(nth), "{",
				`{"emailAddress":"a@example.org","display_phone_number":"+91 7","quality_rating":"GREEN",
				"messaging_limit_tier":"TIER_1K","health_status":{"can_send_message":"AVAILABLE"},`, 1))
			return
		}
		switch to := d.sent(r); {
		case to == "":
			say(d.refuses["token"])
		case strings.HasPrefix(to, nobody):
			say(d.refuses["recipient"])
		case strings.HasPrefix(to, throttled):
			say(d.refuses["throttled"])
		case strings.HasPrefix(to, busy) && nth == 1:
			say(d.refuses["temporary"])
		default:
			_, _ = io.WriteString(w, d.accepts(nth))
		}
	}))
}

// networks returns networks that one handler serves.
func networks(t *testing.T, handler http.Handler) *chat.Networks {
	t.Helper()
	server := worktest.Serve(t, handler)
	return calling(t, server.URL, time.Minute)
}

func calling(t *testing.T, at string, timeout time.Duration) *chat.Networks {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	exceptions, err := egress.Parse([]string{u.Host})
	require.NoError(t, err)
	n, err := chat.New(chat.Settings{
		ChatURL: at, GatewayURL: at + "/wa/api/v1/", TelegramURL: at, GmailURL: at + "/", TwitterURL: at, Client: exceptions.Client(),
		Timeout: timeout, Pause: time.Millisecond,
	})
	require.NoError(t, err)
	return n
}

func (d dialect) message(to, image string) network.Message {
	if d.account.Type == "gmail" {
		to += "@example.org"
	}
	return network.Message{ID: "msg_8", To: to, Text: "Sample", Image: image, Subject: "Order"}
}

// Each adapter, with a server of ours, and the sandbox must pass the same tests.
func TestEveryNetworkTakesMessages(t *testing.T) {
	t.Parallel()
	sandbox, err := chat.New(chat.Settings{})
	require.NoError(t, err)
	for name, d := range dialects {
		var last atomic.Pointer[http.Request]
		var body atomic.Pointer[[]byte]
		adapter := d.served(t, func(r *http.Request, b []byte) { last.Store(r); body.Store(&b) })
		for kind, n := range map[string]*chat.Networks{"adapter": adapter, "sandbox": sandbox} {
			t.Run(name+" "+kind, func(t *testing.T) {
				require.Equal(t, kind == "sandbox", n.Sandboxed(d.account))
				id, err := n.Send(t.Context(), d.account, d.message(phone, ""))
				require.NoError(t, err)
				require.NotEmpty(t, id)
				image := picture
				if d.uploads && kind == "adapter" {
					image = "http://" + last.Load().Host + pixelAt
				}
				id, err = n.Send(t.Context(), d.account, d.message(phone, image))
				require.NoError(t, err)
				require.NotEmpty(t, id)
				if kind == "adapter" {
					d.image(t, last.Load(), *body.Load())
				}
				if kind == "sandbox" || d.refuses["recipient"] != "" {
					_, err = n.Send(t.Context(), d.account, network.Message{ID: "msg_8", To: nobody, Text: "Hello"})
					require.Equal(t, network.Recipient, chat.AsFailure(err).Reason)
				}
				health, err := n.Health(t.Context(), d.account)
				require.NoError(t, err)
				if kind != "adapter" || !d.silent {
					require.Equal(t, "available", health.CanSend)
				}
				if kind == "adapter" {
					require.Equal(t, d.identity, health.Identity)
				}
				none := d.account
				none.AccessToken = ""
				if _, err = n.Health(t.Context(), none); none != d.account {
					require.Equal(t, network.Unconfigured, chat.AsFailure(err).Reason)
				}
			})
		}
	}
}

func TestTheNetworksErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := d.served(t, nil)
			if d.refuses["temporary"] != "" {
				_, err := n.Send(t.Context(), d.account, d.message(busy, ""))
				require.NoError(t, err, "it is tried again")
			}
			wrong := d.account
			wrong.APIKey, wrong.AccessToken = strings.ReplaceAll(wrong.APIKey, "s3", "S3"), strings.ReplaceAll(wrong.AccessToken, "s3", "S3")
			_, err := n.Send(t.Context(), wrong, d.message(phone, ""))
			require.Equal(t, network.Credentials, chat.AsFailure(err).Reason)

			_, err = n.Send(t.Context(), d.account, d.message(throttled, ""))
			failed := chat.AsFailure(err)
			require.Equal(t, network.Throttled, failed.Reason)
			require.GreaterOrEqual(t, failed.After, time.Second)
			require.Equal(t, "provider_rate_limited", failed.Fault().Code)
		})
	}
}

// A misbehaving server never makes us send twice, wait for ever, follow a redirect, or reveal a secret.
func TestServersMisbehave(t *testing.T) {
	t.Parallel()
	handlers := map[string]struct {
		handler http.HandlerFunc
		want    network.Reason
	}{
		"takes too long": {func(_ http.ResponseWriter, r *http.Request) { bodyOf(r); <-r.Context().Done() }, network.Unknown},
		"breaks off":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, network.Unknown},
		"no JSON":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, network.Unknown},
		"no id":          {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, network.Unknown},
		"an endless page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", 2<<20)) },
			network.Unknown},
		"a bare 500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, network.Unknown},
		"a bare 429": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}, network.Throttled},
		"a bare 401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, network.Credentials},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, network.Refused},
		"another's error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"x"}`)
		}, network.Refused},
	}
	for what, h := range handlers {
		for name, d := range dialects {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				var mine atomic.Int64
				server := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mine.Add(1); h.handler(w, r) }))
				timeout := time.Minute
				if what == "takes too long" {
					timeout = 2 * time.Second // enough for a busy machine to reach the server
				}
				_, err := calling(t, server.URL, timeout).Send(t.Context(), d.account, d.message(phone, ""))
				failed := chat.AsFailure(err)
				require.Equal(t, h.want, failed.Reason)
				require.EqualValues(t, 1, mine.Load(), "it is not sent again")
				if what == "a bare 429" {
					require.Equal(t, 7*time.Second, failed.After)
				}
			})
		}
	}
}

func TestAServerThatIsAwayIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	n := calling(t, server.URL, time.Minute)
	server.Close()
	for name, d := range dialects {
		_, err := n.Send(t.Context(), d.account, d.message(phone, ""))
		require.Equal(t, network.Unreached, chat.AsFailure(err).Reason, name)
		require.NotContains(t, fmt.Sprintf("%v %+v", err, d.account), "s3cret")
	}
	guarded, err := chat.New(chat.Settings{TelegramURL: "http://127.0.0.1:9", Client: egress.Allowlist{}.Client(), Pause: time.Millisecond})
	require.NoError(t, err)
	_, err = guarded.Send(t.Context(), dialects["telegram"].account, network.Message{To: phone, Text: "Hello"})
	require.Equal(t, network.Unreached, chat.AsFailure(err).Reason, "private addresses are not called")
}

func TestTheNetworksWordsHaveNoSecret(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, strings.SplitN(d.refuses["token"], " ", 2)[1])
		}))
		_, err := n.Send(t.Context(), d.account, d.message(phone, ""))
		failed := chat.AsFailure(err)
		require.Equal(t, network.Credentials, failed.Reason, name)
		require.NotContains(t, failed.Title+failed.Details, "s3cret", name)
		require.Contains(t, failed.Title+failed.Details, "********", name)
	}
}

// The codes of the cloud wire format (CONTRACT.md 3.1.3, 0.9).
func TestTheCloudsCodesHaveTheirMeaning(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]struct {
		reason network.Reason
		code   string
	}{
		4: {network.Throttled, "provider_rate_limited"}, 80007: {network.Throttled, "provider_rate_limited"},
		0:   {network.Credentials, "provider_auth"},
		200: {network.Credentials, "provider_auth"}, 299: {network.Credentials, "provider_auth"}, 300: {network.Refused, "provider_refused"},
		131047: {network.WindowClosed, "reply_window_closed"}, 131049: {network.Recipient, "recipient_failed"},
		132012: {network.Content, "provider_refused"},
		132016: {network.Suspended, "provider_refused"}, 132099: {network.Content, "provider_refused"},
		131053: {network.Recipient, "recipient_failed"},
		33:     {network.Refused, "provider_refused"}, 100: {network.Refused, "provider_refused"}, 368: {network.Restricted, "provider_auth"},
		131016: {network.Temporary, "provider_unavailable"},
		424242: {network.Refused, "provider_refused"},
	} {
		n := networks(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(map[bool]int{true: 400, false: 500}[code%2 == 0]) // without a reason
			_, _ = fmt.Fprintf(w, `{"error":{"message":"m","code":%d}}`, code)
		}))
		_, err := n.Send(t.Context(), dialects["cloud"].account, network.Message{To: phone, Text: "Hello"})
		failed := chat.AsFailure(err)
		require.Equal(t, want.reason, failed.Reason, code)
		require.Equal(t, want.code, failed.Fault().Code, code)
	}
}

func TestSettingsThatAreNoAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"chat.example.org", "ftp://chat.example.org", "https://user:password@chat.example.org", "https://"} {
		_, err := chat.New(chat.Settings{ChatURL: text})
		require.ErrorContains(t, err, "CHAT_BASE_URL: expected an address")
		require.NotContains(t, err.Error(), "password")
	}
}
