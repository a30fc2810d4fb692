package ledgerhttp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

func TestPolishersAreListedByTheirType(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	var salim, noor shown
	clerk.POST("/polisher", `{"name":"Salim","type":0}`).Status(201).JSON(&salim)
	clerk.POST("/polisher", `{"name":"Noor","type":2}`).Status(201).JSON(&noor)
	listed := func(path string, want ...int64) {
		t.Helper()
		var got []shown
		var ids []int64
		clerk.GET(path).Status(200).JSON(&got)
		for _, a := range got {
			ids = append(ids, a.ID)
		}
		require.Equal(t, want, ids, path)
	}
	listed("/polishers", salim.ID, noor.ID)
	listed("/regular-polishers", salim.ID)
	listed("/meena-polishers")
	listed("/rodium-polishers", noor.ID)

	known := "?known_at=" + clerk.GET("/polishers").Status(200).Header("Bahi-Position")
	one := fmt.Sprint("/polisher/", salim.ID)
	clerk.PUT(one, `{"type":1}`).Status(200).Body(fmt.Sprintf(`{"id":%d,"name":"Salim","type":1,"cash_balance":0,"crystal_balance":0,
		"cash_position":"settled","crystal_position":"settled","revision":1}`, salim.ID))
	clerk.PUT(one, clerk.GET(one).Status(200).Text).Status(200)
	listed("/regular-polishers")
	listed("/meena-polishers", salim.ID)
	listed("/regular-polishers"+known, salim.ID)
	listed("/meena-polishers" + known)
}
