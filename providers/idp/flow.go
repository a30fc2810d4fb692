package idp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// FlowLifetime limits the duration of a sign-in with the provider.
const FlowLifetime = 10 * time.Minute

// flowUse is the associated data of a sealed flow: other values sealed with the key do not open as a flow.
const flowUse = "bahi idp flow 1"

// Flow is a sign-in between [Client.Begin] and [Client.Finish]. The browser that began it stores everything except the URL. The data are
// sealed, so no other browser can finish the flow.
type Flow struct {
	URL       string    `json:"-"` // where the user consents
	State     string    `json:"state"`
	Nonce     string    `json:"nonce"`
	Verifier  string    `json:"verifier"` // code verifier of PKCE (RFC 7636)
	ExpiresAt time.Time `json:"expires_at"`
}

// Begin starts a sign-in. It fails with ErrUnavailable if the provider's endpoints are unknown and cannot be fetched.
func (c *Client) Begin(ctx context.Context) (Flow, error) {
	e, err := c.endpoints(ctx)
	if err != nil {
		return Flow{}, err
	}
	f := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), ExpiresAt: c.config.Now().Add(FlowLifetime)}
	f.URL = e.oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	return f, nil
}

// Seal returns the flow as a cookie's value, which its holder can neither read nor change. The key must have 32 bytes; no other error is
// possible.
func (f Flow) Seal(key []byte) (string, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("encode a flow: %w", err)
	}
	sealed := aead.Seal(nil, nil, text, []byte(flowUse)) //nolint:gosec // G407: it takes no nonce from outside, it makes its own
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// OpenFlow opens a flow that [Flow.Seal] sealed with the same key. It fails with ErrInvalidRequest for anything else, or if the flow has
// expired.
func OpenFlow(sealed string, key []byte, now time.Time) (Flow, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return Flow{}, err
	}
	// Strict: otherwise the spare bits of the last character could be changed.
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return Flow{}, as(ErrInvalidRequest, err)
	}
	text, err := aead.Open(nil, nil, b, []byte(flowUse))
	if err != nil {
		return Flow{}, as(ErrInvalidRequest, err)
	}
	var f Flow
	if err := json.Unmarshal(text, &f); err != nil {
		return Flow{}, as(ErrInvalidRequest, err)
	}
	if !now.Before(f.ExpiresAt) {
		return Flow{}, fmt.Errorf("%w: it expired at %s", ErrInvalidRequest, f.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return f, nil
}

const keyBytes = 32

// newAEAD returns AES-256-GCM with a random nonce before each ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, fmt.Errorf("a flow's key has %d bytes, not %d", keyBytes, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use a flow's key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
