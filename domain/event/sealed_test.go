package event_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
)

type person struct{ email event.Personal }

type contact struct {
	Phone event.Personal `json:"phone,omitzero"`
	Note  string         `json:"note,omitempty"`
}

type registered struct {
	Email    event.Personal  `json:"email"`
	Token    event.Secret    `json:"token,omitzero"`
	Nick     *event.Personal `json:"nick,omitempty"`
	Contacts []contact       `json:"contacts,omitempty"`
	Pair     [2]contact      `json:"pair,omitzero"`
}

func (e registered) Evolve(p person) person { p.email = e.Email; return p }

type left struct{}

func (left) Evolve(person) person { return person{} }

var people = event.NewKind("person", event.Of[registered]("Registered", 1), event.Of[left]("Left", 1))

const address = "asha@example.org"

func sample() registered {
	nick := event.NewPersonal("user-1", "asha-nick")
	return registered{
		Email: event.NewPersonal("user-1", address), Token: event.NewSecret("channel-1", "s3cret"), Nick: &nick,
		Contacts: []contact{{Note: "none"}, {Phone: event.NewPersonal("user-2", "+91")}},
		Pair:     [2]contact{{Phone: event.NewPersonal("user-3", "+92")}},
	}
}

func closeAll(fields []*event.Sealed) error {
	for _, f := range fields {
		text, _ := f.Plaintext()
		f.SetCiphertext(1, []byte(strings.ToUpper(text)))
	}
	return nil
}

func TestClearValuesAreNotEncoded(t *testing.T) {
	t.Parallel()
	_, err := people.Encode(uuid.New(), sample(), event.Meta{})
	require.ErrorContains(t, err, "personal value of user-1: the value is plaintext: the vault must seal it first")
	require.NotContains(t, err.Error(), address)
}

func TestSealedValuesKeepTheirForm(t *testing.T) {
	t.Parallel()
	sealed, err := event.MapSealed([]event.Event[person]{left{}, sample()}, closeAll)
	require.NoError(t, err)
	require.Equal(t, left{}, sealed[0])
	stored, err := people.Encode(uuid.New(), sealed[1], event.Meta{})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"email": {"sealed": 1, "class": "personal", "subject": "user-1", "key": 1, "box": "QVNIQUBFWEFNUExFLk9SRw=="},
		"token": {"sealed": 1, "class": "secret", "subject": "channel-1", "key": 1, "box": "UzNDUkVU"},
		"nick": {"sealed": 1, "class": "personal", "subject": "user-1", "key": 1, "box": "QVNIQS1OSUNL"},
		"contacts": [{"note": "none"}, {"phone": {"sealed": 1, "class": "personal", "subject": "user-2", "key": 1, "box": "Kzkx"}}],
		"pair": [{"phone": {"sealed": 1, "class": "personal", "subject": "user-3", "key": 1, "box": "Kzky"}}, {}]
	}`, string(stored.Data))
	back, err := people.Decode(event.Stored{Type: stored.Type, Data: stored.Data, Meta: stored.Meta})
	require.NoError(t, err)
	require.Equal(t, sealed[1], back.Data, "states must remain comparable")
}

func TestSealingDoesNotChangeTheGivenEvent(t *testing.T) {
	t.Parallel()
	given := sample()
	_, err := event.MapSealed([]registered{given}, closeAll)
	require.NoError(t, err)
	require.Equal(t, sample(), given)
}

func TestEventsWithoutSealedValuesAreReturnedAsGiven(t *testing.T) {
	t.Parallel()
	for _, events := range [][]event.Event[person]{nil, {left{}}, {registered{}}, {nil}} {
		same, err := event.MapSealed(events, func([]*event.Sealed) error { panic("there is nothing to seal") })
		require.NoError(t, err)
		require.Equal(t, events, same)
	}
}

func BenchmarkEventsWithoutSealedValues(b *testing.B) {
	one := []event.Event[person]{left{}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = event.MapSealed(one, closeAll)
	}
}

func TestFailureToSealIsReturned(t *testing.T) {
	t.Parallel()
	_, err := event.MapSealed([]registered{sample()}, func([]*event.Sealed) error { return event.ErrErased })
	require.ErrorIs(t, err, event.ErrErased)
}

func TestValuesOfARecordedBatchAreOpened(t *testing.T) {
	t.Parallel()
	sealed, err := event.MapSealed([]any{left{}, sample()}, closeAll)
	require.NoError(t, err)
	batch := []event.Recorded[any]{{Position: 1, Data: sealed[0]}, {Position: 2, Data: sealed[1]}}
	open, err := event.MapSealedIn(batch, func(fields []*event.Sealed) error {
		for _, f := range fields {
			_, box, ok := f.Box()
			require.True(t, ok)
			f.Open(strings.ToLower(string(box)))
		}
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, open[1].Position)
	email := open[1].Data.(registered).Email
	text, err := email.Text()
	require.NoError(t, err)
	require.Equal(t, address, text)
	_, err = batch[1].Data.(registered).Email.Text()
	require.ErrorIs(t, err, event.ErrNotOpened)

	same, err := event.MapSealedIn(batch[:1], func([]*event.Sealed) error { panic("there is nothing to open") })
	require.NoError(t, err)
	require.Equal(t, batch[:1], same)
	_, err = event.MapSealedIn(batch, func([]*event.Sealed) error { return event.ErrErased })
	require.ErrorIs(t, err, event.ErrErased)
}

func TestOpenedPersonalValueGoesIntoATable(t *testing.T) {
	t.Parallel()
	p := event.NewPersonal("user-1", address)
	_, err := p.Value()
	require.ErrorContains(t, err, "plaintext")
	text, err := p.Text()
	require.NoError(t, err)
	require.Equal(t, address, text)

	p.SetCiphertext(1, []byte("box"))
	_, err = p.Value()
	require.ErrorIs(t, err, event.ErrNotOpened)
	require.False(t, p.Erased())
	_, ok := p.Plaintext()
	require.False(t, ok)

	p.Open(address)
	column, err := p.Value()
	require.NoError(t, err)
	require.Equal(t, address, column)

	p.Erase()
	require.True(t, p.Erased())
	column, err = p.Value()
	require.NoError(t, err)
	require.Nil(t, column, "an erased value is null")
	_, err = p.Text()
	require.ErrorIs(t, err, event.ErrErased)
	form, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"sealed":1,"class":"personal","subject":"user-1","key":1,"box":"Ym94"}`, string(form), "the stored form")

	column, err = event.Personal{}.Value()
	require.NoError(t, err)
	require.Nil(t, column)
	text, err = event.Personal{}.Text()
	require.NoError(t, err)
	require.Empty(t, text)
}

func TestTextsAreNotPrinted(t *testing.T) {
	t.Parallel()
	e := sample()
	e.Email.Open(address)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, text := range []string{fmt.Sprintf(verb, e), fmt.Sprintf(verb, e.Token), fmt.Sprintf(verb, &e.Email)} {
			require.NotContains(t, text, address, verb)
			require.NotContains(t, text, "s3cret", verb)
			require.NotContains(t, text, fmt.Sprintf("%x", address), verb)
		}
	}
	require.Equal(t, "secret value of channel-1", fmt.Sprint(e.Token))
	require.Equal(t, "no value", fmt.Sprint(event.Personal{}))
}

func TestInvalidFormsAreNotQuoted(t *testing.T) {
	t.Parallel()
	for form, problem := range map[string]string{
		`"asha@example.org"`: "not a sealed value",
		`{"sealed":2,"class":"personal","subject":"user-1","key":1,"box":"Ym94"}`: "sealed form 2 is unknown to this program",
		`{"sealed":1,"class":"secret","subject":"user-1","key":1,"box":"Ym94"}`:   `a "secret" value instead of a personal one`,
		`{"sealed":1,"class":"personal","subject":"","key":1,"box":"Ym94"}`:       "lacks its subject, key or box",
		`{"sealed":1,"class":"personal","subject":"user-1","box":"Ym94"}`:         "lacks its subject, key or box",
		`{"sealed":1,"class":"personal","subject":"user-1","key":1}`:              "lacks its subject, key or box",
		`{"sealed":1,"class":"personal","subject":"user-1","key":1,"box":"?"}`:    "not a sealed value",
	} {
		var p event.Personal
		err := json.Unmarshal([]byte(form), &p)
		require.ErrorContains(t, err, problem, form)
		require.NotContains(t, err.Error(), address)
		require.True(t, p.IsZero())
	}
	var s event.Secret
	require.ErrorContains(t, json.Unmarshal([]byte(`{"sealed":1,"class":"personal"}`), &s), "instead of a secret one")
	p := event.NewPersonal("user-1", address)
	require.NoError(t, json.Unmarshal([]byte(`null`), &p))
	require.True(t, p.IsZero())
}

type tree struct {
	Name event.Personal `json:"name,omitzero"`
	Kids []tree         `json:"kids,omitempty"`
}

func TestUnreachableValuesAreNotWrittenInClear(t *testing.T) {
	t.Parallel()
	type inMap struct{ M map[string]event.Personal }
	require.PanicsWithValue(t, "map[string]event.Personal: sealed values in a map are not followed, use a slice", func() {
		_, _ = event.MapSealed([]inMap{{}}, closeAll)
	})
	type bare struct{ S event.Sealed }
	require.Panics(t, func() { _, _ = event.MapSealed([]bare{{}}, closeAll) })
	require.Panics(t, func() { event.NewPersonal("", address) })

	name := event.NewPersonal("user-1", address)
	trees, err := event.MapSealed([]tree{{Name: name, Kids: []tree{{Name: name}}}}, closeAll)
	require.NoError(t, err)
	_, err = json.Marshal(trees[0])
	require.ErrorContains(t, err, "plaintext")

	type anything struct{ A any }
	hidden := anything{A: name}
	same, err := event.MapSealed([]anything{hidden}, closeAll)
	require.NoError(t, err)
	_, err = json.Marshal(same[0])
	require.ErrorContains(t, err, "plaintext")
}
