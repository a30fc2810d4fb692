package vault

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"bahi/domain/event"
)

// Seal encrypts the plaintext values, for [event.MapSealed]. A subject gets its key with its first value. Seal returns [event.ErrErased]
// for an erased subject.
func (v *Vault) Seal(ctx context.Context, fields []*event.Sealed) error {
	fields = slices.DeleteFunc(slices.Clone(fields), func(f *event.Sealed) bool { _, inClear := f.Plaintext(); return !inClear })
	if len(fields) == 0 {
		return nil
	}
	keys, err := v.readOrMake(ctx, subjectsOf(fields))
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	for _, f := range fields {
		version, alive := keys[f.Subject()].newest()
		if !alive {
			return fmt.Errorf("seal a value of %s: %w", f.Subject(), event.ErrErased)
		}
		text, _ := f.Plaintext()
		box, err := keys[f.Subject()][version].Encrypt([]byte(text), ofValue(f.Class(), f.Subject(), version))
		if err != nil {
			return fmt.Errorf("seal a value of %s: %w", f.Subject(), err)
		}
		f.SetCiphertext(version, box)
	}
	return nil
}

// OpenPersonal opens the personal values or marks them as erased, for [event.MapSealed] and [event.MapSealedIn]. Secrets stay sealed. It
// returns [ErrNoKey] or [ErrChanged] if a value is neither readable nor erased. It may have opened others before.
func (v *Vault) OpenPersonal(ctx context.Context, fields []*event.Sealed) error {
	return v.open(ctx, slices.DeleteFunc(slices.Clone(fields), func(f *event.Sealed) bool { return f.Class() != event.ClassPersonal }))
}

// OpenValue opens one personal or secret value. It returns [event.ErrErased] if the value is erased.
func (v *Vault) OpenValue(ctx context.Context, s event.Sealed) (string, error) {
	if text, inClear := s.Plaintext(); inClear || s.IsZero() {
		return text, nil
	}
	if err := v.open(ctx, []*event.Sealed{&s}); err != nil {
		return "", err
	}
	return event.Personal{Sealed: s}.Text()
}

func (v *Vault) open(ctx context.Context, fields []*event.Sealed) error {
	fields = slices.DeleteFunc(fields, func(f *event.Sealed) bool { _, _, isClosed := f.Box(); return !isClosed })
	if len(fields) == 0 {
		return nil
	}
	keys, err := v.read(ctx, subjectsOf(fields))
	if err != nil {
		return fmt.Errorf("open sealed values: %w", err)
	}
	for _, f := range fields {
		version, box, _ := f.Box()
		aead, known := keys[f.Subject()][version]
		if !known {
			return fmt.Errorf("open a value of %s, key version %d: %w", f.Subject(), version, ErrNoKey)
		}
		if aead == nil {
			f.Erase()
			continue
		}
		text, err := aead.Decrypt(box, ofValue(f.Class(), f.Subject(), version))
		if err != nil {
			return fmt.Errorf("open a value of %s: %w", f.Subject(), ErrChanged)
		}
		f.Open(string(text))
	}
	return nil
}

func subjectsOf(fields []*event.Sealed) []string {
	subjects := make(map[string]bool, len(fields))
	for _, f := range fields {
		subjects[f.Subject()] = true
	}
	return slices.Collect(maps.Keys(subjects))
}
