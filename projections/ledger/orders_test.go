package ledger_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/client"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/takada"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/projections/ledger"
	"bahi/projections/projectiontest"
)

func account(l *book.Ledger, id int64, workspace uuid.UUID, e event.Event[book.Account]) happened {
	return projectiontest.Happened(l.Accounts, text(id), e, event.Meta{Workspace: workspace, Actor: "user:7", Reason: "why"})
}

func ordering(id int64, e event.Event[order.State], of ...event.Position) happened {
	return projectiontest.Happened(order.Kind, text(id), e, following(of))
}

func delivering(id int64, e event.Event[takada.State], of ...event.Position) happened {
	return projectiontest.Happened(takada.Kind, text(id), e, following(of))
}

func following(of []event.Position) event.Meta {
	meta := event.Meta{Workspace: home, Actor: "user:8"}
	if of != nil {
		meta.Of = of[0]
	}
	return meta
}

func orderOf(holder int64, weight unit.Grams) order.Added {
	return order.Added{Order: order.Order{Client: holder, Slip: new(book.Text("A1")), Date: day, Items: []order.Item{{ID: 1, Name: "ring", Weight: weight}}}}
}

func takadaOf(number int64, weight unit.Grams, maker *int64) takada.Added {
	return takada.Added{Takada: takada.Takada{Order: number, Date: day, Items: []takada.Item{{Name: "ring", Weight: weight, Karigar: maker}}}}
}

const (
	orderRows  = `select id, client_id, slip_folded, weight_mg, delivered_mg, takadas, revision, deleted, cause_stream, cause_position from client_order order by id`
	takadaRows = `select id, order_id, karigars, revision, deleted, cause_stream, cause_position from takada order by id`
)

func TestOrdersAndTakadasEndWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledger.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		account(karigar.Ledger, 2, home, book.AccountOpened{Name: "Imran"}),
		account(client.Ledger, 3, home, book.AccountOpened{Name: "Asha"}),
		account(client.Ledger, 4, away, book.AccountOpened{Name: "Stranger"}),
		ordering(1, orderOf(1, 20_000)), // 5
		ordering(2, orderOf(1, 30_000)),
		ordering(3, orderOf(4, 1)),                       // void: another workspace's client
		ordering(4, orderOf(2, 1)),                       // void: a karigar is no client
		delivering(1, takadaOf(1, 5_000, new(int64(2)))), // 9
		delivering(2, takadaOf(1, 20_000, nil)),
		delivering(3, takadaOf(3, 1, nil)),           // void: no such order
		delivering(4, takadaOf(1, 1, new(int64(3)))), // void: a client is no karigar
		delivering(2, takada.Edited{Order: patch.Set[int64](2)}),
		ordering(2, order.ClientChangeAnnounced{}), // 14
		delivering(5, takadaOf(2, 1, nil)),         // void: the client is about to change
		ordering(2, order.ClientChangeDropped{}),
		delivering(6, takadaOf(2, 15_000, nil)), // 17
		account(karigar.Ledger, 2, home, book.AccountDeleted{}),
		delivering(7, takadaOf(2, 1, new(int64(2)))), // void: the karigar is gone
		ordering(5, orderOf(3, 7_000)),               // 20
		ordering(1, order.Deleted{}),
		delivering(1, takada.Edited{Date: patch.Set(day + 1)}), // void: it ended with its order
		account(client.Ledger, 1, home, book.AccountDeleted{}), // 23
		ordering(2, order.Edited{Date: patch.Set(day + 1)}),    // void: it ended with its client
		ordering(6, orderOf(1, 1)),                             // void
		ordering(2, order.Deleted{}, 23),
		delivering(1, takada.Deleted{}, 21),
	)
	require.Equal(t, []string{
		`(1,1,a1,20000,0,0,1,t,,)`, `(2,1,a1,30000,0,0,4,t,,)`, `(5,3,a1,7000,0,0,0,f,,)`,
	}, tables.Rows(orderRows))
	require.Equal(t, []string{`(1,1,{2},2,t,,)`, `(2,2,{},1,t,client-1,23)`, `(6,2,{},0,t,client-1,23)`}, tables.Rows(takadaRows))
	require.Equal(t, []string{
		`(clientorder,1,5,1,0,f,user:8,)`, `(clientorder,1,21,1,1,t,user:8,)`,
		`(clientorder,2,6,1,0,f,user:8,)`, `(clientorder,2,23,1,,t,user:7,why)`,
		`(clientorder,5,20,3,0,f,user:8,)`,
		`(takada,1,9,1,0,f,user:8,)`, `(takada,1,21,1,,t,user:8,)`,
		`(takada,2,10,1,0,f,user:8,)`, `(takada,2,13,1,1,f,user:8,)`, `(takada,2,23,1,,t,user:7,why)`,
		`(takada,6,17,1,0,f,user:8,)`, `(takada,6,23,1,,t,user:7,why)`,
	}, tables.Rows(`select kind, id, position, client_id, revision, state is null, actor, reason from record_version order by kind, id, position`))
	require.Empty(t, tables.Examine())
}

func TestDraftBecomesOrdersAllOrNone(t *testing.T) {
	t.Parallel()
	converted := func(id int64, orders ...orderdraft.Ordered) happened {
		return projectiontest.Happened(orderdraft.Kind, text(id), orderdraft.Converted{Orders: orders}, following(nil))
	}
	tables := projectiontest.Run(t, ledger.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		account(client.Ledger, 2, home, book.AccountOpened{Name: "Asha"}),
		converted(7, orderdraft.Ordered{ID: 11, Order: orderOf(1, 20_000).Order}, orderdraft.Ordered{ID: 12, Order: orderOf(2, 5_000).Order}), // 3
		delivering(1, takadaOf(11, 8_000, nil)),
		ordering(11, orderOf(1, 20_000), 3),                    // the first stream is told
		account(client.Ledger, 2, home, book.AccountDeleted{}), // 6
		ordering(12, orderOf(2, 5_000), 3),
		converted(8, orderdraft.Ordered{ID: 13, Order: orderOf(1, 1).Order}, orderdraft.Ordered{ID: 14, Order: orderOf(2, 1).Order}), // void
		ordering(11, order.Edited{Date: patch.Set(day + 1)}),
	)
	require.Equal(t, []string{`(11,1,a1,20000,8000,1,1,f,,)`, `(12,2,a1,5000,0,0,0,t,client-2,6)`}, tables.Rows(orderRows))
	require.Equal(t, []string{`(11,7)`, `(12,7)`}, tables.Rows(`select id, draft_id from client_order order by id`))
	require.Equal(t, []string{`(11,3,0,f)`, `(11,9,1,f)`, `(12,3,0,f)`, `(12,6,,t)`},
		tables.Rows(`select id, position, revision, state is null from record_version where kind = 'clientorder' order by id, position`))
	require.Empty(t, tables.Examine())
}

func TestDeliveredWeightFollowsTheTakadas(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledger.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		ordering(1, orderOf(1, 20_000)), ordering(2, orderOf(1, 20_000)),
		delivering(1, takadaOf(1, 5_000, nil)), delivering(2, takadaOf(1, 6_000, nil)), delivering(3, takadaOf(2, 1_000, nil)),
		delivering(2, takada.Edited{Items: patch.Set([]takada.Item{{Name: "ring", Weight: 8_000}})}),
		delivering(1, takada.Edited{Order: patch.Set[int64](2)}),
		delivering(3, takada.Deleted{}),
		ordering(1, order.Edited{Items: patch.Set([]order.Item{{ID: 2, Name: "ring", Weight: 1_500}}), Slip: patch.Clear[book.Text]()}),
	)
	require.Equal(t, []string{`(1,1,"",1500,8000,1,1,f,,)`, `(2,1,a1,20000,5000,1,0,f,,)`}, tables.Rows(orderRows))
	require.Empty(t, tables.Examine())
}

func TestAVoidDeletionOfAClientLeavesItsOrders(t *testing.T) {
	t.Parallel()
	tables := projectiontest.Run(t, ledger.Orders,
		account(client.Ledger, 1, home, book.AccountOpened{Name: "Meena"}),
		account(client.Ledger, 1, home, book.AccountRenamed{From: "Meena", To: "Meena Shah"}),
		ordering(1, orderOf(1, 20_000)), delivering(1, takadaOf(1, 5_000, nil)),
		locked(&day), account(client.Ledger, 1, home, book.AccountDeleted{EarliestRow: &day}), // void
		ordering(1, order.Edited{Client: patch.Set[int64](9)}), // void
		locked(nil), account(client.Ledger, 1, home, book.AccountDeleted{}), // void: the lock moved since
	)
	require.Equal(t, []string{`(1,1,a1,20000,5000,1,1,f,,)`}, tables.Rows(orderRows))
	require.Equal(t, []string{`("Meena Shah",)`}, tables.Rows(`select name, deleted_position from account`))
	require.Empty(t, tables.Examine())
}
