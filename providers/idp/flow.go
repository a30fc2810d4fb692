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

// FlowLifetime is how long somebody may take to sign in with the provider.
const FlowLifetime = 10 * time.Minute

// flowUse is the associated data of a sealed flow, so that nothing else that the key ever seals can pass for one.
const flowUse = "bahi idp flow 1"

// Flow is one person's sign-in between [Client.Begin] and [Client.Finish]. All but the URL is kept by the browser that began, sealed, so
// that no other browser can finish it.
type Flow struct {
	URL       string    `json:"-"` // where the provider asks for consent
	State     string    `json:"state"`
	Nonce     string    `json:"nonce"`
	Verifier  string    `json:"verifier"` // of PKCE (RFC 7636)
	ExpiresAt time.Time `json:"expires_at"`
}

// Begin starts a sign-in. It answers ErrUnavailable if the provider's endpoints are not known and it does not tell them.
func (c *Client) Begin(ctx context.Context) (Flow, error) {
	e, err := c.endpoints(ctx)
	if err != nil {
		return Flow{}, err
	}
	f := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), ExpiresAt: c.config.Now().Add(FlowLifetime)}
	f.URL = e.oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	return f, nil
}

// Seal makes a cookie's value of the flow: whoever holds it can neither read nor change it. The key has 32 bytes; the error is about
// the key alone.
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

// OpenFlow opens what [Flow.Seal] sealed with the same key. It answers ErrInvalidRequest if that is not what it is given, or if the flow
// has expired by now.
func OpenFlow(sealed string, key []byte, now time.Time) (Flow, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return Flow{}, err
	}
	// Strict: else the last character could be changed in its spare bits.
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

// newAEAD makes AES-256-GCM which puts a random nonce before each ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, fmt.Errorf("a flow's key has %d bytes, not %d", keyBytes, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("take up a flow's key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
