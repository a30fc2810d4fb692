package apptest

import (
	"net/http"

	"github.com/stretchr/testify/require"
)

const AuditStream = "/audit/events/stream?category=bank"

// Listening requests a stream that may be refused.
func (o *Server) Listening(token string) *http.Response {
	o.T.Helper()
	request, err := http.NewRequestWithContext(o.T.Context(), http.MethodGet, o.URL+AuditStream, nil)
	require.NoError(o.T, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.T, err)
	o.T.Cleanup(func() { response.Body.Close() })
	return response
}
