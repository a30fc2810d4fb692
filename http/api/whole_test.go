package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/test/apitest"
	"bahi/internal/test/worktest"
)

// ByItems is exported, as huma requires.
type ByItems struct {
	Items int  `query:"items"`
	Holds bool `query:"holds"`
	Fails bool `query:"fails"`
	Paged bool `query:"paged"`
}

// library serves lists and drawn documents. Those with hold pause in their middle until the test releases them.
type library struct {
	*apitest.Client

	server *httptest.Server
	spool  string
	begun  chan struct{}
	goOn   chan struct{}
	ended  chan struct{} // each request, with any outcome
}

// page is an item of slightly more than 1 KB.
type page struct {
	Text string `json:"text"`
}

var onePage = page{strings.Repeat("x", 1<<10)}

func openLibrary(t *testing.T, whole api.BufferLimits) *library {
	t.Helper()
	l := &library{spool: t.TempDir(), begun: make(chan struct{}, 100), goOn: make(chan struct{}), ended: make(chan struct{}, 100)}
	hold := func(ctx context.Context, holds bool) error {
		if !holds {
			return nil
		}
		l.begun <- struct{}{}
		select {
		case <-l.goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	whole.Hold = cmp.Or(whole.Hold, time.Hour) // most tests use whole responses
	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: everybody}}, Whole: whole, Spool: l.spool})
	api.Handle(a, api.Op{ID: "list", Method: "GET", Path: "/list", Summary: "List", Operator: true},
		func(ctx context.Context, in *ByItems) (*api.Body[api.List[page]], error) {
			all := api.NewList[page](ctx)
			add := func() error {
				for range in.Items {
					if err := all.Add(onePage); err != nil {
						return err
					}
				}
				return hold(ctx, in.Holds)
			}
			if in.Paged {
				return api.Answer(all, add())
			}
			return api.Answer(all, api.InTurn(ctx, add))
		})
	api.Handle(a, api.Op{ID: "handle", Method: "GET", Path: "/handled", Summary: "Handle", Operator: true, Expensive: true},
		func(ctx context.Context, in *ByItems) (*api.Body[page], error) {
			return api.Answer(onePage, hold(ctx, in.Holds))
		})
	api.Download(a, api.Op{ID: "draw", Method: "GET", Path: "/drawn", Summary: "Draw", Operator: true}, map[string]any{"text/plain": nil},
		func(_ context.Context, in *ByItems) (api.Content, error) {
			return api.Content{Type: "text/plain", Drawn: true, Write: func(ctx context.Context, w io.Writer) error {
				for range in.Items {
					if _, err := io.WriteString(w, onePage.Text); err != nil {
						return err
					}
				}
				if err := hold(ctx, in.Holds); err != nil || !in.Fails {
					return err
				}
				return errors.New("the pen broke")
			}}, nil
		})
	l.server = worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { l.ended <- struct{}{} }()
		a.ServeHTTP(w, r)
	}))
	l.Client = apitest.New(t, l.server.URL, "bahi_operator")
	return l
}

// ask requests the path several times, and returns a function that waits for the responses.
func (l *library) ask(t *testing.T, times int, path string) (answers func() []*apitest.Answer) {
	t.Helper()
	var (
		asking sync.WaitGroup
		all    = make([]*apitest.Answer, times)
	)
	for i := range all {
		asking.Go(func() { all[i] = l.GET(path) })
	}
	return func() []*apitest.Answer {
		asking.Wait()
		return all
	}
}

// empty checks that nothing remains of the responses.
func (l *library) empty(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(l.spool)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAListIsAnsweredAtAnyLength(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, api.BufferLimits{})
	for _, items := range []int{0, 1, 2, 63, 64, 5000} {
		want := make([]page, items)
		for i := range want {
			want[i] = onePage
		}
		text, err := json.Marshal(want)
		require.NoError(t, err)
		got := l.GET(fmt.Sprintf("/list?items=%d", items)).Status(200)
		require.Equal(t, "application/json", got.Header("Content-Type"))
		require.True(t, string(text)+"\n" == got.Text, "%d items", items) //nolint:testifylint // a difference of megabytes is not shown
		require.Empty(t, l.Do(http.MethodHead, fmt.Sprintf("/list?items=%d", items), nil).Status(200).Text)
		require.Len(t, l.GET(fmt.Sprintf("/drawn?items=%d", items)).Status(200).Text, items<<10)
	}
	l.empty(t)
}

func TestLongWaitForATurnGets503(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/drawn", "/handled", "/list"} {
		l := openLibrary(t, api.BufferLimits{MaxConcurrent: 1, Wait: time.Millisecond})
		answers := l.ask(t, 1, "/drawn?holds=true")
		<-l.begun
		refused := l.GET(path).Problem(503, "Too many expensive requests at once, try again")
		require.Equal(t, "1", refused.Header("Retry-After"))
		l.Do(http.MethodHead, "/drawn", nil).Status(200)
		l.GET("/list?paged=true").Status(200)
		l.goOn <- struct{}{}
		answers()[0].Status(200)
		free := func() bool { return l.GET(path).Response.StatusCode == http.StatusOK }
		require.Eventually(t, free, time.Minute, time.Millisecond, "the turn is free")
	}
}

func TestDrawingStopsWhenItsClientLeaves(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, api.BufferLimits{MaxConcurrent: 1, Wait: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server.URL+"/drawn?holds=true", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer bahi_operator")
	left := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(request)
		left <- err
	}()
	<-l.begun
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	l.GET("/drawn?items=100").Status(200)
	l.empty(t)
}

// read requests a document, and returns the parts before it was complete, and the rest.
func (l *library) read(t *testing.T, path string, early int) (first, rest []byte, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.server.URL+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer bahi_operator")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 200, answer.StatusCode)
	require.Equal(t, "text/plain", answer.Header.Get("Content-Type"))
	first = make([]byte, early)
	_, err = io.ReadFull(answer.Body, first)
	require.NoError(t, err)
	l.goOn <- struct{}{}
	rest, err = io.ReadAll(answer.Body)
	return first, rest, err
}

func TestADocumentThatTakesLongIsSentWhileItIsDrawn(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, api.BufferLimits{Hold: time.Nanosecond})
	first, rest, err := l.read(t, "/drawn?items=1000&holds=true", 900<<10) // the last of it waits in the buffer
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(onePage.Text, 1000), string(first)+string(rest))
	_, _, err = l.read(t, "/drawn?items=100&holds=true&fails=true", 64<<10)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "no client may take a part for the whole")
	l.GET("/drawn?items=10&fails=true").Problem(500, "Internal error") // nothing was sent
	l.empty(t)
}

func TestLongAnswersUseBoundedDiskSpace(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, api.BufferLimits{Files: 4 * 160 << 10})
	for _, path := range []string{"/list", "/drawn"} {
		l.GET(path+"?items=1000").Problem(422, "The response is too long: request fewer days, or pages")
		answers := l.ask(t, 4, "/list?items=150&holds=true&paged=true")
		for range 4 {
			<-l.begun
		}
		l.GET(path+"?items=150").Problem(503, "Too many long responses are being sent, try again")
		l.GET(path + "?items=30").Status(200)
		for range 4 {
			l.goOn <- struct{}{}
		}
		for _, a := range answers() {
			a.Status(200)
		}
		l.GET(path + "?items=150").Status(200)
	}
	l.empty(t)
}

func TestClientThatReadsNothingIsCutOff(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, api.BufferLimits{Pause: 10 * time.Millisecond, Files: 4 * 17 << 20})
	for _, path := range []string{"/list", "/list", "/drawn", "/drawn"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.server.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close() //nolint:gocritic // all stay open until the end
		_, err = fmt.Fprintf(conn, "GET %s?items=16000 HTTP/1.1\r\nHost: bahi\r\nAuthorization: Bearer bahi_operator\r\n\r\n", path)
		require.NoError(t, err)
		<-l.ended
		got, _ := io.Copy(io.Discard, conn) // the bytes that the kernel had accepted
		require.Less(t, got, int64(16_000<<10))
	}
	l.Do(http.MethodHead, "/list?items=14000", nil).Status(200) // there is space for it again
	l.empty(t)
}

func TestADownloadMayTakeLongerThanARequestToArrive(t *testing.T) {
	t.Parallel()
	const arrival = 50 * time.Millisecond
	a := api.New(api.Config{Credentials: []api.Credential{{Authenticator: everybody}}})
	api.Download(a, api.Op{ID: "wait", Method: "GET", Path: "/wait", Summary: "Wait", Operator: true}, map[string]any{"text/plain": nil},
		func(context.Context, *struct{}) (api.Content, error) {
			return api.Content{Type: "text/plain", Write: func(ctx context.Context, w io.Writer) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(5 * arrival): // first, unless the read deadline ends the request
				}
				_, err := io.WriteString(w, "whole")
				return err
			}}, nil
		})
	server := httptest.NewUnstartedServer(a)
	server.Config.ReadTimeout = arrival
	server.Start()
	t.Cleanup(server.Close)
	require.Equal(t, "whole", apitest.New(t, server.URL, "bahi_operator").GET("/wait").Status(200).Text)
}
