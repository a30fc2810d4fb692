package marketplace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlacesOfATemplateAreLinesThatAreNotEmpty(t *testing.T) {
	t.Parallel()
	full := letter{
		Company: "Asha Mills", Link: "https://bahi.example/enquiries/1", Name: "Ravi", Email: "ravi@example.org", Phone: "+919812345678", Product: "Brass hook", Quantity: 500,
		Message: "In steel?\nAnd " + strings.Repeat("अ", 600),
	}
	places := full.places()
	require.Equal(t, []string{"Asha Mills", "Ravi", "ravi@example.org +919812345678"}, places[:3])
	require.True(t, strings.HasPrefix(places[3], "500 Brass hook In steel? And अ"))
	require.Len(t, []rune(places[3]), mostOfPlace)
	require.Equal(t, full.Link, places[4])
	require.Equal(t, []string{"Asha Mills", "-", "-", "-", ""}, letter{Company: "Asha Mills"}.places())
}
