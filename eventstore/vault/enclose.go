package vault

import (
	"context"
	"fmt"
)

// wrappedSize is the size of a wrapped data key: nonce, key and tag.
const wrappedSize = 12 + keySize + 16

// SealBytes encrypts bytes outside the log under a new key of their own. The named key wraps that key, and the result begins with it.
// Deleting the result destroys the key. OpenBytes opens it for the same name and purpose only.
func (v *Vault) SealBytes(ctx context.Context, name, purpose string, plain []byte) ([]byte, error) {
	outer, err := v.Named(ctx, name, keySize)
	if err != nil {
		return nil, err
	}
	wrapping, err := newAEAD(outer)
	if err != nil {
		return nil, err
	}
	key := newKey(keySize)
	wrapped, err := wrapping.Encrypt(key, ofEnclosed("key", name, purpose))
	if err != nil {
		return nil, fmt.Errorf("wrap the key of %s: %w", purpose, err)
	}
	own, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	box, err := own.Encrypt(plain, ofEnclosed("bytes", name, purpose))
	if err != nil {
		return nil, fmt.Errorf("seal bytes with %s: %w", purpose, err)
	}
	return append(wrapped, box...), nil
}

// OpenBytes returns the plaintext of SealBytes. It returns [ErrChanged] for a text that SealBytes did not return for the name and purpose.
func (v *Vault) OpenBytes(ctx context.Context, name, purpose string, enclosed []byte) ([]byte, error) {
	outer, err := v.Named(ctx, name, keySize)
	if err != nil {
		return nil, err
	}
	wrapping, err := newAEAD(outer)
	if err != nil {
		return nil, err
	}
	if len(enclosed) < wrappedSize {
		return nil, fmt.Errorf("open bytes with %s: %w", purpose, ErrChanged)
	}
	key, err := wrapping.Decrypt(enclosed[:wrappedSize], ofEnclosed("key", name, purpose))
	if err != nil {
		return nil, fmt.Errorf("open bytes with %s: %w", purpose, ErrChanged)
	}
	own, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	plain, err := own.Decrypt(enclosed[wrappedSize:], ofEnclosed("bytes", name, purpose))
	if err != nil {
		return nil, fmt.Errorf("open bytes with %s: %w", purpose, ErrChanged)
	}
	return plain, nil
}
