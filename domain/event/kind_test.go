package event_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

// priced has had three versions: a price in rupees, then in paise, then with its currency.
type priced struct {
	Paise    int64  `json:"price_paise"`
	Currency string `json:"currency"`
}

type goods struct {
	last     priced
	position event.Position
}

func (e priced) Evolve(g goods) goods { g.last = e; return g }

func (e priced) EvolveAt(g goods, at event.Position) goods {
	g.last, g.position = e, at
	return g
}

type sold struct{}

func (sold) Evolve(g goods) goods { return g }

func step(from int, do func(old map[string]any) error) event.Upcaster {
	return event.Upcaster{From: from, Do: func(data json.RawMessage) (json.RawMessage, error) {
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			return nil, err
		}
		if err := do(fields); err != nil {
			return nil, err
		}
		return json.Marshal(fields)
	}}
}

var toPaise = step(1, func(f map[string]any) error {
	rupees, ok := f["price"].(float64)
	if !ok {
		return errors.New("no price")
	}
	delete(f, "price")
	f["price_paise"] = int64(rupees * 100)
	return nil
})

var withCurrency = step(2, func(f map[string]any) error { f["currency"] = "INR"; return nil })

var kind = event.NewKind("goods", event.Of[priced]("Priced", 3, withCurrency, toPaise), event.Of[sold]("Sold", 1))

func stored(name, data, meta string) event.Stored {
	return event.Stored{
		Position: 7, Stream: "goods-1-2", Revision: 3, ID: uuid.MustParse("0192f0c1-0000-7000-8000-000000000001"),
		Type: name, Data: []byte(data), Meta: []byte(meta), At: time.Date(2026, 3, 31, 18, 30, 0, 0, time.UTC),
	}
}

func TestOldVersionsAreLifted(t *testing.T) {
	t.Parallel()
	catalogue := event.NewCatalogue(kind)
	for meta, data := range map[string]string{
		`{"schema":1}`: `{"price":12}`,
		`{"schema":2}`: `{"price_paise":1200}`,
		`{"schema":3}`: `{"price_paise":1200,"currency":"INR"}`,
	} {
		r, err := kind.Decode(stored("Priced", data, meta))
		require.NoError(t, err, meta)
		require.Equal(t, priced{Paise: 1200, Currency: "INR"}, r.Data, meta)
		same, err := catalogue.Decode(stored("Priced", data, meta))
		require.NoError(t, err, meta)
		require.Equal(t, r.Data, same.Data, meta)
	}
}

func TestUndecodableEventIsNamed(t *testing.T) {
	t.Parallel()
	catalogue := event.NewCatalogue(kind)
	for _, c := range []struct{ name, data, meta, problem string }{
		{"Priced", `{}`, `{"schema":4}`, "decode Priced at position 7: schema version 4 is unknown to this program, which knows 1 to 3"},
		{"Priced", `{}`, `{}`, "decode Priced at position 7: schema version 0 is unknown"},
		{"Priced", `{}`, `{"schema":1}`, "decode Priced at position 7: upcast from version 1: no price"},
		{"Priced", `[]`, `{"schema":3}`, "decode Priced at position 7: json:"},
		{"Priced", `{}`, `[]`, "decode metadata of Priced at position 7: json:"},
		{"Forgotten", `{}`, `{"schema":1}`, `"Forgotten" is `},
	} {
		_, err := kind.Decode(stored(c.name, c.data, c.meta))
		if c.name != "Forgotten" {
			require.ErrorContains(t, err, c.problem)
		} else {
			require.EqualError(t, err, `decode position 7: "Forgotten" is not an event of kind goods`)
		}
		_, err = catalogue.Decode(stored(c.name, c.data, c.meta))
		require.ErrorContains(t, err, c.problem)
	}
}

func TestEncodedEventRoundTrips(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("0192f0c1-0000-7000-8000-000000000001")
	meta := event.Meta{
		Schema: 99, Workspace: uuid.MustParse("0192f0c1-0000-7000-8000-000000000002"), Actor: "user:9", RequestID: "r", CorrelationID: "c",
		OccurredAt: time.Date(2026, 3, 31, 18, 29, 59, 123456000, time.UTC), CausationID: "e", Reason: "typo", FollowUpOf: 5, More: 2,
	}
	n, err := kind.Encode(id, priced{1200, "INR"}, meta)
	require.NoError(t, err)
	require.Equal(t, "Priced", n.Type)
	require.Equal(t, id, n.ID)
	require.JSONEq(t, `{"price_paise":1200,"currency":"INR"}`, string(n.Data))
	require.JSONEq(t, `{
		"schema": 3, "workspace": "0192f0c1-0000-7000-8000-000000000002", "actor": "user:9", "occurred_at": "2026-03-31T18:29:59.123456Z",
		"request_id": "r", "correlation_id": "c", "causation_id": "e", "reason": "typo", "follow_up_of": 5, "more": 2
	}`, string(n.Meta), "the kind sets the version")
	elsewhere := meta
	elsewhere.OccurredAt = meta.OccurredAt.Add(789).In(time.FixedZone("", 19800))
	same, err := kind.Encode(id, priced{1200, "INR"}, elsewhere)
	require.NoError(t, err)
	require.Equal(t, string(n.Meta), string(same.Meta), "a moment is in UTC, with microseconds at most")
	r, err := kind.Decode(stored(n.Type, string(n.Data), string(n.Meta)))
	require.NoError(t, err)
	meta.Schema = 3
	require.Equal(t, event.Recorded[event.Event[goods]]{
		Position: 7, Stream: "goods-1-2", Revision: 3, ID: id, At: time.Date(2026, 3, 31, 18, 30, 0, 0, time.UTC), Meta: meta,
		Data: priced{1200, "INR"},
	}, r)
	require.Equal(t, "1-2", r.StreamID())
	require.Equal(t, "goods-1-2", kind.Stream("1-2"))
}

func TestEventOfAnotherKindIsNotEncoded(t *testing.T) {
	t.Parallel()
	other := event.NewKind("other", event.Of[sold]("OtherSold", 1))
	_, err := other.Encode(uuid.New(), priced{}, event.Meta{})
	require.EqualError(t, err, "encode: event_test.priced is not an event of kind other")
	_, err = other.Encode(uuid.New(), nil, event.Meta{})
	require.Error(t, err)
}

func TestPlacedEventsGetTheirPosition(t *testing.T) {
	t.Parallel()
	g := kind.Evolve(goods{}, event.Recorded[event.Event[goods]]{Position: 4, Data: priced{Paise: 1}})
	require.Equal(t, goods{last: priced{Paise: 1}, position: 4}, g)
	require.Equal(t, g, kind.Evolve(g, event.Recorded[event.Event[goods]]{Position: 5, Data: sold{}}))
}

func TestCatalogueKnowsEveryName(t *testing.T) {
	t.Parallel()
	c := event.NewCatalogue(kind, people)
	names := []string{}
	for _, info := range c.All() {
		names = append(names, info.Category+" "+info.Name)
		found, ok := c.Lookup(info.Name)
		require.True(t, ok)
		require.Equal(t, info, found)
		require.Equal(t, []string{info.Name}, c.NamesOf(info.Go))
	}
	require.Equal(t, []string{"goods Priced", "goods Sold", "person Registered", "person Left"}, names)
	shared := event.NewCatalogue(kind, event.NewKind("others", event.Of[sold]("OtherSold", 1)))
	require.Equal(t, []string{"Sold", "OtherSold"}, shared.NamesOf(reflect.TypeFor[sold]()), "kinds may share types")
	_, ok := c.Lookup("Forgotten")
	require.False(t, ok)
}

func TestInvalidKindsPanic(t *testing.T) {
	t.Parallel()
	for sentence, mistake := range map[string]func(){
		"a name comes twice":                   func() { event.NewKind("a", event.Of[sold]("X", 1), event.Of[priced]("X", 1)) },
		"a type comes twice":                   func() { event.NewKind("a", event.Of[sold]("X", 1), event.Of[sold]("Y", 1)) },
		"a category with a dash":               func() { event.NewKind("a-b", event.Of[sold]("X", 1)) },
		"no category":                          func() { event.NewKind("", event.Of[sold]("X", 1)) },
		"a version without its upcaster":       func() { event.Of[priced]("X", 3, toPaise) },
		"an upcaster from the current version": func() { event.Of[priced]("X", 1, toPaise) },
		"an upcaster twice":                    func() { event.Of[priced]("X", 2, toPaise, toPaise) },
		"a category twice in the registry":     func() { event.NewCatalogue(kind, kind) },
		"a name in two kinds": func() {
			event.NewCatalogue(kind, event.NewKind("b", event.Of[left]("Sold", 1)))
		},
		"the name of a type in no kind": func() { event.NewCatalogue().NamesOf(nil) },
	} {
		require.Panics(t, mistake, sentence)
	}
}

func TestStreamNamesSplitAtTheirFirstDash(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string][2]string{
		"bank-12": {"bank", "12"}, "enquiry-0192-f0": {"enquiry", "0192-f0"}, "bank": {"bank", ""}, "-1": {"", "1"},
	} {
		category, id := event.SplitStream(stream)
		require.Equal(t, want, [2]string{category, id}, stream)
	}
	require.Equal(t, "bank-12", event.StreamName("bank", "12"))
}

func TestReadingCompletesDecodedEvents(t *testing.T) {
	t.Parallel()
	refuse := func(e event.Event[goods]) (event.Event[goods], error) {
		p, ok := e.(priced)
		if ok && p.Paise < 0 {
			return nil, errors.New("a negative price")
		}
		p.Paise *= 2
		return p, nil
	}
	k := event.NewKind("doubled", event.Of[priced]("Priced", 1).Reading(refuse), event.Of[sold]("Sold", 1).Reading(nil))
	r, err := k.Decode(event.Stored{Type: "Priced", Data: []byte(`{"price_paise":3}`), Meta: []byte(`{"schema":1}`)})
	require.NoError(t, err)
	require.Equal(t, priced{Paise: 6}, r.Data)
	_, err = k.Decode(event.Stored{Type: "Priced", Data: []byte(`{"price_paise":-3}`), Meta: []byte(`{"schema":1}`)})
	require.ErrorContains(t, err, "a negative price")
}

// A NUL from a network or a model would stop a projection, because Postgres tables cannot have NULs.
func TestTextsAreDecodedWithoutNULs(t *testing.T) {
	t.Parallel()
	kind := event.NewKind("goods", event.Of[priced]("Priced", 1))
	for stored, want := range map[string]string{
		`a\u0000b`: "ab", `\u0000`: "", `a\u0000\u0000`: "a", `\\u0000`: `\u0000`, `\\\u0000b`: `\b`, `\u00000\u0001\"`: "0\x01\"", `\u0030`: "0",
	} {
		r, err := kind.Decode(event.Stored{Position: 1, Stream: "goods-1", Type: "Priced",
			Data: []byte(`{"price_paise":1,"currency":"` + stored + `"}`), Meta: []byte(`{"schema":1}`)})
		require.NoError(t, err, stored)
		require.Equal(t, priced{1, want}, r.Data, stored)
	}
	p := event.NewPersonal("user-1", "a\x00b")
	p.SetCiphertext(1, []byte("box"))
	p.Open("a\x00b")
	text, err := p.Value()
	require.NoError(t, err)
	require.Equal(t, "ab", text)
}

func TestMoreIsReadFromMetadata(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]int{
		`{"schema":1,"more":3}`: 3, `{"more" : 1}`: 1, `{"schema":1}`: 0, `{"reason":"\"more\":3"}`: 0, `{"more":-1}`: 0, `{"more":"3"}`: 0,
		`{"more":9e9}`: 0, `["more"]`: 0,
	} {
		require.Equal(t, want, event.More([]byte(meta)), meta)
	}
}
