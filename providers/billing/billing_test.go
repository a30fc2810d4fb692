package billing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/providers/billing"
)

func TestSignaturesOfBilling(t *testing.T) {
	t.Parallel()
	const secret, body, vector = "billing-secret-for-tests", `{"id":"evt_1","type":"invoice.paid"}`,
		"7487fb8b0a3f2407534af9561bc68cee027713fc3d56f776d930c675d00b39c9"
	at := time.Unix(1760000000, 0)
	check := func(header, body string, now time.Time) bool {
		return billing.Signed([]string{"next", secret}, header, []byte(body), now)
	}
	require.True(t, check("t=1760000000,v1="+vector, body, at.Add(5*time.Minute)))
	require.True(t, check("t=1760000000, v0=x, v1=00, v1="+vector, body, at.Add(-5*time.Minute)))
	require.True(t, check(billing.Sign(secret, body), body, at))
	require.True(t, check("sha256="+billing.Sign(secret, body), body, at))
	for what, signed := range map[string]bool{
		"old":   check("t=1760000000,v1="+vector, body, at.Add(301*time.Second)),
		"early": check("t=1760000000,v1="+vector, body, at.Add(-301*time.Second)), "no time": check("v1="+vector, body, at),
		"another time": check("t=1760000001,v1="+vector, body, at), "another body": check("t=1760000000,v1="+vector, body+" ", at),
		"none":            check("", body, at),
		"another version": check("t=1760000000,v0="+vector, body, at), "not a time": check("t=x,v1="+vector, body, at),
	} {
		require.False(t, signed, what)
	}
	require.False(t, billing.Signed(nil, billing.Sign("", body), []byte(body), at))
}

func TestEventsOfBilling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]billing.Event{
		`{"id":"evt_1","type":"customer.subscription.updated","created":7,"data":{"object":{"customer":"cus_1","status":"trialing",` +
			`"items":{"data":[{"price":{"id":"gold"}}]},"metadata":{"workspace_id":"w"}}}}`: {
			ID: "evt_1", Type: "customer.subscription.updated", Created: 7, Customer: "cus_1", Workspace: "w", Plan: "gold", Status: "trialing",
		},
		`{"type":"checkout.session.completed","data":{"object":{"customer":"cus_1","client_reference_id":"w"}}}`: {
			Type: "checkout.session.completed", Customer: "cus_1", Workspace: "w", Status: "active",
		},
		`{"event":"subscription.cancelled","created_at":8,"payload":{"payment":{"entity":{"customer_id":"c","plan_id":"x"}},` +
			`"subscription":{"entity":{"customer_id":"cus_2","plan_id":"silver"}}}}`: {
			Type: "subscription.cancelled", Created: 8, Customer: "cus_2", Plan: "silver", Status: "canceled",
		},
		`{"type":"invoice.payment_failed","data":{"object":{"customer":"cus_1"}}}`: {Type: "invoice.payment_failed", Customer: "cus_1",
			Status: "past_due"},
		`{"type":"charge.refunded"}`: {Type: "charge.refunded"},
	} {
		e, err := billing.Decode([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, e)
	}
	for _, text := range []string{"", "[]", `{"created":"x"}`} {
		_, err := billing.Decode([]byte(text))
		require.Error(t, err)
	}
}
