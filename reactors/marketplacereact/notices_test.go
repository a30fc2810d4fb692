package marketplacereact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/reactors"
)

func TestPlacesOfATemplateAreLinesThatAreNotEmpty(t *testing.T) {
	t.Parallel()
	full := letter{
		Company: "Asha Mills", Link: "https://bahi.example/enquiries/1", Name: "Ravi", Email: "ravi@example.org", Phone: "+919812345678",
		Product: "Brass hook", Quantity: 500,
		Message: "In steel?\nAnd " + strings.Repeat("अ", 600),
	}
	places := full.places()
	require.Equal(t, []string{"Asha Mills", "Ravi", "ravi@example.org +919812345678"}, places[:3])
	require.True(t, strings.HasPrefix(places[3], "500 Brass hook In steel? And अ"))
	require.Len(t, []rune(places[3]), maxOfPlace)
	require.Equal(t, full.Link, places[4])
	require.Equal(t, []string{"Asha Mills", "-", "-", "-", ""}, letter{Company: "Asha Mills"}.places())
}

func TestEnquiriesThatComeTogetherAreToldByOneJob(t *testing.T) {
	t.Parallel()
	var into reactors.Mergeable = notifyByMail{one(uuid.New())}
	for range maxAsked - 1 {
		all, taken := into.Join(notifyByMail{one(uuid.New())})
		require.True(t, taken)
		into = all.(reactors.Mergeable)
	}
	_, taken := into.Join(notifyByMail{one(uuid.New())})
	require.False(t, taken)
	require.Len(t, into.(notifyByMail).all(), maxAsked)
	text, err := json.Marshal(into)
	require.NoError(t, err)
	var again notifyByMail
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, into, again)

	var old pushLead // of an older program
	require.NoError(t, json.Unmarshal([]byte(`{"enquiry_id":"0195e8a0-7c1e-7000-8000-0000000000aa"}`), &old))
	require.Equal(t, []uuid.UUID{uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa")}, old.all())
}
