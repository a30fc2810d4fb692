package http_test

import (
	"fmt"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

func TestAnAccountIsChangedAsItsUserSawIt(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha := o.Person(o.Address("asha"))
	const stale = "It was changed since you read it"
	seen := asha.GET(apptest.Me).Status(200).Header("ETag")
	require.NotEmpty(t, seen)
	o.SignIn(o.Address("asha"), apptest.GoodPassword)
	require.Equal(t, seen, asha.GET(apptest.Me).Header("ETag"), "a sign-in is no change")
	next := asha.With("If-Match", seen).PUT(apptest.Me, `{"first_name":"Usha"}`).Status(200).Header("ETag")
	require.NotEqual(t, seen, next)
	require.Equal(t, next, asha.GET(apptest.Me).Header("ETag"))
	old := asha.With("If-Match", seen)
	for _, body := range []string{`{"first_name":"Mina"}`, `{"email":"mina@example.com"}`, `{}`} {
		old.PUT(apptest.Me, body).Problem(412, stale)
	}
	apptest.Upload(t, old, "image/png", apptest.Painted(t, color.White, 8, 8)).Problem(412, stale)
	require.Equal(t, []string{"Usha", o.Address("asha")}, []string{asha.Me().FirstName, asha.Me().Email})

	// Another address changes more than one stream; the tag is good for the next change all the same.
	next = asha.With("If-Match", next).PUT(apptest.Me, `{"email":"`+o.Address("usha")+`","first_name":"Asha"}`).Status(200).Header("ETag")
	keyed := asha.With("If-Match", next).With("Idempotency-Key", "k")
	a := keyed.PUT(apptest.Me, `{"phone":"98123 45678"}`).Status(200)
	again := keyed.PUT(apptest.Me, `{"phone":"98123 45678"}`).Status(200)
	require.Equal(t, "true", again.Header("Idempotency-Replayed"))
	require.Equal(t, a.Header("ETag"), again.Header("ETag"))
	a = apptest.Upload(t, asha.With("If-Match", again.Header("ETag")), "image/png", apptest.Painted(t, color.White, 8, 8)).Status(200)
	require.Equal(t, a.Header("ETag"), asha.GET(apptest.Me).Header("ETag"))
}

func TestAMemberIsChangedAsTheCallerSawThem(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	asha, ravi, usha := o.Person(o.Address("asha")), o.Person(o.Address("ravi")), o.Person(o.Address("usha"))
	asha.Join(o, ravi, `{"ledger":"read"}`)
	asha.Join(o, usha, `{"ledger":"read"}`)
	path := "/api/v1/workspaces/" + asha.Workspace + "/members"
	members := apitest.Read[[]apptest.Member](asha.GET(path).Status(200))
	require.Len(t, members, 3)
	require.Equal(t, []string{ravi.User.ID, usha.User.ID}, []string{members[1].UserID, members[2].UserID})
	seen := func(m apptest.Member) *apitest.Client { return asha.With("If-Match", fmt.Sprintf(`"%d"`, m.Revision)) }
	const stale, write = "It was changed since you read it", `{"permissions":{"ledger":"write"}}`

	var changed struct {
		WorkspaceID string         `json:"workspace_id"`
		UserID      string         `json:"user_id"`
		Permissions map[string]any `json:"permissions"`
		Revision    int64          `json:"revision"`
	}
	a := seen(members[1]).PATCH(path+"/"+ravi.User.ID, write).Status(200).JSON(&changed)
	require.Equal(t, fmt.Sprintf(`"%d"`, changed.Revision), a.Header("ETag"))
	seen(members[1]).PATCH(path+"/"+ravi.User.ID, `{"permissions":{"audit":"read"}}`).Problem(412, stale)
	seen(members[1]).DELETE(path+"/"+ravi.User.ID).Problem(412, stale)
	seen(members[2]).PATCH(path+"/"+usha.User.ID, write).Status(200) // with the revision from the same list
	asha.GET(path).Status(200).JSON(&members)
	require.Equal(t, changed.Revision, members[1].Revision)
	require.Equal(t, "write", members[1].Permissions["ledger"])
	seen(members[1]).DELETE(path + "/" + ravi.User.ID).Status(204)
}
