package commands

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"bahi/domain/event"
)

func hash(sum []byte) string { return hex.EncodeToString(sum) }

// Hash returns a keyed hash as text. It is for stream names that must not reveal their subject.
func (h *Handler) Hash(ctx context.Context, name string, parts ...[]byte) (string, error) {
	sum, err := h.vault.HMAC(ctx, name, parts...)
	if err != nil {
		return "", fmt.Errorf("hash for %s: %w", name, err)
	}
	return hash(sum), nil
}

// Reveal returns a state, or a part of one, with decrypted personal values. Erased values are empty.
func Reveal[T any](ctx context.Context, h *Handler, v T) (T, error) {
	all, err := event.MapSealed([]T{v}, func(values []*event.Sealed) error { return h.vault.OpenPersonal(ctx, values) })
	if err != nil {
		return v, fmt.Errorf("open personal values: %w", err)
	}
	return all[0], nil
}

// RevealOf returns a decrypted personal value of a stream, or "" if there is none or it was erased.
func RevealOf[S any](ctx context.Context, h *Handler, k *event.Kind[S], id string, value func(S) event.Personal) (string, error) {
	l, err := Load(ctx, h.Fresh(), k, id)
	if err != nil {
		return "", err
	}
	s, err := Reveal(ctx, h, l.State)
	if err != nil {
		return "", err
	}
	text, err := value(s).Text()
	if errors.Is(err, event.ErrErased) {
		return "", nil
	}
	return text, err
}
