package apptest

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/eventstore"
)

// Opened returns the personal values in a database's log that can still be opened.
func Opened(t *testing.T, url string) (texts []string) {
	t.Helper()
	sys, err := Settings(t, url).Open(t.Context(), false)
	require.NoError(t, err)
	defer sys.Close()
	for stored, err := range sys.Store.ReadAll(t.Context(), 0, eventstore.Forwards) {
		require.NoError(t, err)
		if !strings.HasPrefix(stored.Stream, user.Kind.Category()+"-") {
			continue
		}
		r, err := user.Kind.Decode(stored)
		require.NoError(t, err)
		var values []event.Personal
		switch e := r.Data.(type) {
		case user.Registered:
			values = []event.Personal{e.Email, e.FirstName, e.LastName}
		case user.EmailChanged:
			values = []event.Personal{e.Email, e.Before}
		case user.EmailRestored:
			values = []event.Personal{e.Email}
		case user.ProfileChanged:
			values = []event.Personal{e.FirstName, e.LastName, e.Phone}
		}
		for _, value := range values {
			if value.IsZero() {
				continue
			}
			text, err := sys.Vault.OpenValue(t.Context(), value.Sealed)
			if !errors.Is(err, event.ErrErased) {
				require.NoError(t, err)
				texts = append(texts, text)
			}
		}
	}
	return texts
}
