package answering

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"bahi/domain/event"
	"bahi/domain/messaging/botanswer"
	"bahi/domain/messaging/botwebhook"
)

// The limits of a webhook call (CONTRACT.md 8.11, B6).
const (
	CallTimeout = 15 * time.Second
	maxResult   = 8 << 10 // bytes
)

const unknownOutcome = "it is not known whether an earlier attempt of this call had its effect; do not assume either, and do not repeat it"

// webhook calls an endpoint of the company. It does not repeat a call of an earlier attempt.
func (t *talk) webhook(ctx context.Context, h hook, values map[string]any) (string, error) {
	if slices.ContainsFunc(t.earlier.Begun, func(b botanswer.Begun) bool { return b.Webhook == h.id }) {
		return failed(unknownOutcome), nil
	}
	began := botanswer.CallBegan{Call: "call_" + uuid.NewString(), Kind: "webhook", Name: h.Name, Webhook: h.id}
	return t.logged(ctx, began, func() (string, botanswer.CallEnded, error) {
		req, body, err := t.request(ctx, h, values, began.Call)
		if errors.Is(err, event.ErrErased) {
			return failed("the webhook is gone"), botanswer.CallEnded{Error: "gone"}, nil
		}
		if err != nil {
			return "", botanswer.CallEnded{}, err
		}
		status, said, failure := t.send(ctx, req, body)
		if failure != "" {
			return failed(failure), botanswer.CallEnded{Status: status, Error: failure}, nil
		}
		result, err := json.Marshal(map[string]any{"status": status, "body": said})
		return string(result), botanswer.CallEnded{Status: status}, err
	})
}

// send makes the call. It retries only if there was no connection.
func (t *talk) send(ctx context.Context, req *http.Request, body []byte) (status int, said, failure string) {
	ctx, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	for attempt := 0; ; attempt++ {
		try := req.Clone(ctx)
		try.Close = true // on a reused connection, the client itself would repeat a broken call
		if body != nil {
			try.Body = io.NopCloser(bytes.NewReader(body))
		}
		res, err := t.Client.Do(try)
		if dialled, ok := errors.AsType[*net.OpError](err); ok && dialled.Op == "dial" && attempt == 0 && ctx.Err() == nil {
			continue
		}
		if err != nil { // its text may contain the URL with customer data
			return 0, "", failureOf(ctx, err)
		}
		text, err := io.ReadAll(io.LimitReader(res.Body, maxResult))
		_ = res.Body.Close()
		if err != nil {
			return res.StatusCode, "", failureOf(ctx, err)
		}
		return res.StatusCode, strings.ToValidUTF8(string(text), ""), ""
	}
}

func failureOf(ctx context.Context, err error) string {
	dialled, ok := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return "the call timed out"
	case ok && dialled.Op == "dial":
		return "the endpoint cannot be reached"
	default:
		return "the endpoint did not respond"
	}
}

// request returns the HTTP request of a call. Parameters override constant values of the same name.
func (t *talk) request(ctx context.Context, h hook, values map[string]any, call string) (*http.Request, []byte, error) {
	for _, p := range h.Parameters {
		if p.Source != botwebhook.Fixed {
			continue
		}
		text, err := t.Secrets.OpenValue(ctx, p.Value.Sealed)
		if err != nil {
			return nil, nil, err
		}
		if values[p.Name], err = botwebhook.Coerce(p.DataType, text); err != nil {
			return nil, nil, err
		}
	}
	inPath, inBody := map[string]string{}, map[string]any{}
	for _, member := range h.JSON {
		value, err := t.Secrets.OpenValue(ctx, member.Value.Sealed)
		if err != nil {
			return nil, nil, err
		}
		inBody[member.Name] = json.RawMessage(value)
	}
	query := url.Values{}
	for _, q := range h.Query {
		value, err := t.Secrets.OpenValue(ctx, q.Value.Sealed)
		if err != nil {
			return nil, nil, err
		}
		query.Set(q.Name, value)
	}
	for _, p := range h.Parameters {
		switch p.Place {
		case botwebhook.InPath:
			inPath[p.Name] = fmt.Sprint(values[p.Name])
		case botwebhook.InQuery:
			query.Set(p.Name, fmt.Sprint(values[p.Name]))
		default:
			inBody[p.Name] = values[p.Name]
		}
	}
	at, err := url.Parse(h.Expand(inPath))
	if err != nil {
		return nil, nil, err
	}
	own := at.Query()
	maps.Copy(own, query)
	at.RawQuery = own.Encode()
	var body []byte
	if len(inBody) > 0 && h.Method != http.MethodGet {
		if body, err = json.Marshal(inBody); err != nil {
			return nil, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, h.Method, at.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	req.ContentLength = int64(len(body))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "BahiBot/1.0")
	for _, header := range h.Headers {
		value, err := t.Secrets.OpenValue(ctx, header.Value.Sealed)
		if err != nil {
			return nil, nil, err
		}
		req.Header.Set(header.Name, value)
	}
	return req, body, t.sign(ctx, req, h, body, call)
}

// sign adds the headers for the endpoint's signature check (CONTRACT.md 3.4).
func (t *talk) sign(ctx context.Context, req *http.Request, h hook, body []byte, call string) error {
	secret, err := t.Secrets.OpenValue(ctx, h.Signing.Sealed)
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(t.Commands.Now().Unix(), 10)
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(call + "." + at + "."))
	sum.Write(body)
	req.Header.Set("webhook-id", call)
	req.Header.Set("webhook-timestamp", at)
	req.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	req.Header.Set("Idempotency-Key", call)
	return nil
}
