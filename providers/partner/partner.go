// Package partner checks the signatures of a partner's calls, by the Standard Webhooks specification.
package partner

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// IDHeader is the header with the id of a call. Repetitions of a call have the same id.
const IDHeader = "webhook-id"

const (
	prefix    = "whsec_"
	least     = 24 // bytes of a secret
	most      = 64
	tolerance = 5 * time.Minute
)

// Secret is a secret of the partner.
type Secret []byte

// Parse reads a secret: whsec_ and base64 of 24 to 64 bytes.
func Parse(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, prefix))
	if err != nil || !strings.HasPrefix(text, prefix) || len(key) < least || len(key) > most {
		return nil, errors.New("expected whsec_ and base64 of 24 to 64 bytes")
	}
	return key, nil
}

// Sign returns the signature of a call.
func (s Secret) Sign(id, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, s)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Signed reports whether one of the secrets has signed the call within five minutes. It ignores signatures of other versions.
func Signed(secrets []Secret, h http.Header, body []byte, now time.Time) bool {
	id, stamp := h.Get(IDHeader), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	given := strings.Fields(h.Get("webhook-signature"))
	return slices.ContainsFunc(secrets, func(s Secret) bool {
		want := s.Sign(id, stamp, body)
		return slices.ContainsFunc(given, func(g string) bool { return hmac.Equal([]byte(g), []byte(want)) })
	})
}
