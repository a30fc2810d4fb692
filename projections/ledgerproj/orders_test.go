package ledgerproj_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/projectiontest"
	"bahi/projections/ledgerproj"
)

func account(l *book.Ledger, id int64, workspace uuid.UUID, e event.Event[book.Account]) happened {
	return projectiontest.Happened(l.Accounts, text(id), e, event.Meta{Workspace: workspace, Actor: "user:7", Reason: "why"})
}

var staff = event.Meta{Workspace: home, Actor: "user:8"}

func ordering(id int64, e event.Event[order.State]) happened {
	return projectiontest.Happened(order.Kind, text(id), e, staff)
}

func delivering(id int64, e event.Event[takada.State]) happened {
	return projectiontest.Happened(takada.Kind, text(id), e, staff)
}

func orderOf(holder int64, weight unit.Grams) order.Added {
	return order.Added{Order: order.Order{Client: holder, Slip: new(book.Text("A1")), Date: day,
		Items: []order.Item{{ID: 1, Name: "ring", Weight: weight}}}}
}

func takadaOf(number int64, weight unit.Grams, maker *int64) takada.Added {
	return takada.Added{Takada: takada.Takada{Order: number, Date: day, Items: []takada.Item{{Name: "ring", Weight: weight, Karigar: maker}}}}
}

const (
	orderRows  = `select id, client_id, slip_folded, weight_mg, delivered_mg, takadas, revision, deleted from client_order order by id`
	takadaRows = `select id, order_id, karigars, revision, deleted from takada order by id`
)

func TestOrdersAndTakadasEndWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		account(karigar.Ledger, 2, home, book.AccountOpened{Name: "Imran"}),
		account(client.Ledger, 3, home, book.AccountOpened{Name: "Asha"}),
		ordering(1, orderOf(1, 20_000)), // 4
		ordering(2, orderOf(1, 30_000)),
		delivering(1, takadaOf(1, 5_000, new(int64(2)))), // 6
		delivering(2, takadaOf(1, 20_000, nil)),
		delivering(2, takada.Edited{Order: patch.Set[int64](2)}),
		delivering(6, takadaOf(2, 15_000, nil)), // 9
		account(karigar.Ledger, 2, home, book.AccountDeleted{}),
		ordering(5, orderOf(3, 7_000)), // 11
		ordering(1, order.Deleted{}),
		account(client.Ledger, 1, home, book.AccountDeleted{}), // 13
	)
	require.Equal(t, []string{`(1,1,a1,20000,0,0,1,t)`, `(2,1,a1,30000,0,0,0,t)`, `(5,3,a1,7000,0,0,0,f)`}, tables.Rows(orderRows))
	require.Equal(t, []string{`(1,1,{2},0,t)`, `(2,2,{},1,t)`, `(6,2,{},0,t)`}, tables.Rows(takadaRows))
	require.Equal(t, []string{
		`(clientorder,1,4,1,0,f,user:8,)`, `(clientorder,1,12,1,1,t,user:8,)`,
		`(clientorder,2,5,1,0,f,user:8,)`, `(clientorder,2,13,1,,t,user:7,why)`,
		`(clientorder,5,11,3,0,f,user:8,)`,
		`(takada,1,6,1,0,f,user:8,)`, `(takada,1,12,1,,t,user:8,)`,
		`(takada,2,7,1,0,f,user:8,)`, `(takada,2,8,1,1,f,user:8,)`, `(takada,2,13,1,,t,user:7,why)`,
		`(takada,6,9,1,0,f,user:8,)`, `(takada,6,13,1,,t,user:7,why)`,
	}, tables.Rows(`select kind, id, position, client_id, revision, state is null, actor, reason from record_version order by kind, id,
		position`))
}

func TestOrdersOfADraftNameIt(t *testing.T) {
	t.Parallel()
	made := orderOf(1, 20_000)
	made.Draft = 7
	tables := projectiontest.Run(t, ledgerproj.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}), ordering(11, made), ordering(12, orderOf(1, 1)),
		ordering(11, order.Edited{Date: patch.Set(day + 1)}))
	require.Equal(t, []string{`(11,7)`, `(12,)`}, tables.Rows(`select id, draft_id from client_order order by id`))
}

func TestDeliveredWeightFollowsTheTakadas(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledgerproj.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		ordering(1, orderOf(1, 20_000)), ordering(2, orderOf(1, 20_000)),
		delivering(1, takadaOf(1, 5_000, nil)), delivering(2, takadaOf(1, 6_000, nil)), delivering(3, takadaOf(2, 1_000, nil)),
		delivering(2, takada.Edited{Items: patch.Set([]takada.Item{{Name: "ring", Weight: 8_000}})}),
		delivering(1, takada.Edited{Order: patch.Set[int64](2)}),
		delivering(3, takada.Deleted{}),
		ordering(1, order.Edited{Items: patch.Set([]order.Item{{ID: 2, Name: "ring", Weight: 1_500}}), Slip: patch.Clear[book.Text]()}),
	)
	require.Equal(t, []string{`(1,1,"",1500,8000,1,1,f)`, `(2,1,a1,20000,5000,1,0,f)`}, tables.Rows(orderRows))
}
