package app_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/internal/app"
)

func TestEventsFromOutsideAreChecked(t *testing.T) {
	t.Parallel()
	e := func(kind, data, meta string) event.Proposed {
		return event.Proposed{ID: uuid.New(), Type: kind, Data: []byte(data), Meta: []byte(meta)}
	}
	for stream, c := range map[string]struct {
		event event.Proposed
		why   string
	}{
		"orders-1": {e("OrderPlaced", `[]`, `{}`), ""},
		"orders-3": {e("OrderPlaced", `[]`, `{"by":"\u0000"}`), "the metadata of OrderPlaced contain a NUL or an unpaired surrogate"},
		"orders-4": {e("OrderPlaced", `[]`, `{"by":"\\\uD83d"}`), "unpaired surrogate"},
		"orders-5": {e("OrderPlaced", `["\u0000"]`, `{"by":"\ud83d\uDE00\\u0000\u0041"}`), ""},
		"orders-6": {e("OrderPlaced", `{}`, `{"more":1}`), `"more", which is reserved for transactions of Bahi`},
		"bank-1":   {e("OrderPlaced", `{}`, `{}`), "only Bahi appends to streams bank-…"},
		"bank-2":   {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "only Bahi appends to streams bank-…"},
		"orders-2": {e("BankAccountRenamed", `{"from":"HDFC","to":"SBI"}`, `{"schema":1}`), "BankAccountRenamed is an event of Bahi"},
	} {
		err := app.CheckForeign(stream, c.event)
		if c.why == "" {
			require.NoError(t, err, "%s", stream)
		} else {
			require.ErrorContains(t, err, c.why, "%s", stream)
		}
	}
}
