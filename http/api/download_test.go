package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/worktest"
)

// ByLines is exported, as huma requires.
type ByLines struct {
	Lines int    `query:"lines"`
	Fails string `query:"fails"`
}

type linesDocument struct {
	Lines []string `json:"lines"`
}

// press serves a text of the requested number of lines, and then fails if the request demands it.
func press(t *testing.T) (client *apitest.Client, url string) {
	t.Helper()
	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: everybody}}, Timeout: impatience})
	api.Download(a, api.Op{ID: "print", Method: "GET", Path: "/lines", Summary: "Print", Operator: true},
		map[string]any{"text/csv": nil, "application/json": linesDocument{}},
		func(ctx context.Context, in *ByLines) (api.Content, error) {
			if in.Lines < 0 {
				return api.Content{}, fault.New(fault.Invalid, "Too few lines")
			}
			return api.Content{Type: "text/csv", Name: "lines.csv", Write: func(writing context.Context, w io.Writer) error {
				if ctx.Err() == nil || writing.Err() != nil {
					return errors.New("the writer must outlive the handler's timeout")
				}
				for i := range in.Lines {
					if _, err := fmt.Fprintf(w, "%d\n", i); err != nil {
						return err
					}
				}
				switch in.Fails {
				case "fault":
					return fault.New(fault.Conflict, "The press is jammed")
				case "error":
					return errors.New("secret")
				}
				return nil
			}}, nil
		})
	server := worktest.Serve(t, a)
	return apitest.New(t, server.URL, "bahi_operator"), server.URL
}

func TestADownloadIsWrittenWhileItIsMade(t *testing.T) {
	t.Parallel()
	client, _ := press(t)
	for _, lines := range []int{0, 1, 100_000} {
		got := client.GET(fmt.Sprintf("/lines?lines=%d", lines)).Status(200)
		require.Equal(t, "text/csv", got.Header("Content-Type"))
		require.Equal(t, `attachment; filename=lines.csv`, got.Header("Content-Disposition"))
		require.Equal(t, lines, strings.Count(got.Text, "\n"))
	}
	head := client.Do(http.MethodHead, "/lines?lines=100000", nil).Status(200)
	require.Empty(t, head.Text)
	require.Equal(t, "text/csv", head.Header("Content-Type"))
}

func TestFailedDownloadIsCutOff(t *testing.T) {
	t.Parallel()
	client, url := press(t)
	client.GET("/lines?lines=-1").Problem(422, "Too few lines")
	early := client.GET("/lines?lines=3&fails=fault").Problem(409, "The press is jammed")
	require.Empty(t, early.Header("Content-Disposition"))
	client.GET("/lines?lines=3&fails=error").Problem(500, "Internal error")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/lines?lines=100000&fails=error", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer bahi_operator")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 200, answer.StatusCode)
	_, err = io.ReadAll(answer.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the connection is cut off")
}
