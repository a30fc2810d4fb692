package vault_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"bahi/domain/event"
	"bahi/eventstore"
	"bahi/eventstore/postgres"
	"bahi/eventstore/vault"
	"bahi/internal/test/pgtest"
	"bahi/migrations"
)

const address = "asha@example.org"

var master, otherMaster = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)

func database(t *testing.T) string {
	t.Helper()
	return pgtest.Template(t, "migrated", migrations.Up)
}

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, url)
}

// node opens the vault as another process would.
func node(t *testing.T, url string, key []byte) *vault.Vault {
	t.Helper()
	v, err := vault.Open(t.Context(), connect(t, url), key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return v
}

func seal(t *testing.T, v *vault.Vault, subject, text string) event.Personal {
	t.Helper()
	out, err := event.MapSealed([]event.Personal{event.NewPersonal(subject, text)}, sealer(t.Context(), v))
	require.NoError(t, err)
	return out[0]
}

func sealer(ctx context.Context, v *vault.Vault) func([]*event.Sealed) error {
	return func(fields []*event.Sealed) error { return v.Seal(ctx, fields) }
}

func reveal(t *testing.T, v *vault.Vault, p event.Personal) event.Personal {
	t.Helper()
	require.NoError(t, v.OpenPersonal(t.Context(), []*event.Sealed{&p.Sealed}))
	return p
}

func requireText(t *testing.T, v *vault.Vault, p event.Personal, want string) {
	t.Helper()
	text, err := reveal(t, v, p).Text()
	require.NoError(t, err)
	require.Equal(t, want, text)
}

// form returns the stored form of a sealed value.
type form struct {
	Sealed  int    `json:"sealed"`
	Class   string `json:"class"`
	Subject string `json:"subject"`
	Key     int    `json:"key"`
	Box     []byte `json:"box"`
}

func formOf(t *testing.T, value any) (f form) {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &f))
	return f
}

func (f form) personal(t *testing.T) (p event.Personal) {
	t.Helper()
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &p))
	return p
}

func TestOtherNodesOpenSealedValues(t *testing.T) {
	t.Parallel()
	url := database(t)
	one, two := node(t, url, master), node(t, url, master)
	p := seal(t, one, "user-1", address)
	_, err := p.Text()
	require.ErrorIs(t, err, event.ErrNotOpened)
	requireText(t, two, p, address)
	requireText(t, two, seal(t, two, "user-1", ""), "")

	text, err := two.OpenValue(t.Context(), p.Sealed)
	require.NoError(t, err)
	require.Equal(t, address, text)
	text, err = two.OpenValue(t.Context(), event.NewPersonal("user-2", "fresh").Sealed)
	require.NoError(t, err)
	require.Equal(t, "fresh", text)
	text, err = two.OpenValue(t.Context(), event.Sealed{})
	require.NoError(t, err)
	require.Empty(t, text)
	require.NoError(t, two.Seal(t.Context(), nil))
	require.NoError(t, two.OpenPersonal(t.Context(), nil))
}

func TestSecretsAreShownButNotRevealed(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	out, err := event.MapSealed([]event.Secret{event.NewSecret("channel-1", "token")}, sealer(t.Context(), v))
	require.NoError(t, err)
	s := out[0]
	before := s
	require.NoError(t, v.OpenPersonal(t.Context(), []*event.Sealed{&s.Sealed}))
	require.Equal(t, before, s)
	text, err := v.OpenValue(t.Context(), s.Sealed)
	require.NoError(t, err)
	require.Equal(t, "token", text)
}

func TestStoredFormIsAsDocumented(t *testing.T) {
	t.Parallel()
	url := database(t)
	v := node(t, url, master)
	f := formOf(t, seal(t, v, "user-1", address))
	require.NotEqual(t, f.Box, formOf(t, seal(t, v, "user-1", address)).Box, "the same text is sealed differently each time")
	require.Equal(t, form{Sealed: 1, Class: "personal", Subject: "user-1", Key: 1, Box: f.Box}, f)

	wrapped := pgtest.Value[[]byte](t, connect(t, url), `select wrapped from vault.key where subject = 'user-1'`)
	key := openByHand(t, master, wrapped, "bahi data key 1", "user-1", "1")
	require.Len(t, key, 32)
	require.Equal(t, address, string(openByHand(t, key, f.Box, "bahi value 1", "personal", "user-1", "1")))
}

// openByHand opens a value as doc.go describes, with the standard library alone.
func openByHand(t *testing.T, key, box []byte, of ...string) []byte {
	t.Helper()
	var ad []byte
	for _, part := range of {
		ad = append(binary.BigEndian.AppendUint64(ad, uint64(len(part))), part...)
	}
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	plain, err := gcm.Open(nil, box[:12], box[12:], ad)
	require.NoError(t, err)
	return plain
}

func TestNodeWithAnotherMasterKeyIsRefused(t *testing.T) {
	t.Parallel()
	url := database(t)
	node(t, url, master)
	node(t, url, master)
	_, err := vault.Open(t.Context(), connect(t, url), otherMaster, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, vault.ErrOtherMaster)
	require.ErrorContains(t, err, "BAHI_MASTER_KEY")
	require.ErrorContains(t, err, "keys/master.key")
	_, err = vault.Open(t.Context(), connect(t, url), master[:16], slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "the master key has 16 bytes, not 32")
}

func TestFirstNodesWithDifferentMasterKeysConflict(t *testing.T) {
	t.Parallel()
	url := database(t)
	errs := race(8, func(i int) error {
		_, err := vault.Open(t.Context(), connect(t, url), [][]byte{master, otherMaster}[i%2], slog.New(slog.DiscardHandler))
		return err
	})
	refused := 0
	for i, err := range errs {
		require.Equal(t, errs[i%2] == nil, err == nil)
		if err != nil {
			require.ErrorIs(t, err, vault.ErrOtherMaster)
			refused++
		}
	}
	require.Equal(t, 4, refused)
}

// race runs n functions at once.
func race(n int, do func(i int) error) []error {
	var all sync.WaitGroup
	errs, start := make([]error, n), make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

func TestConcurrentFirstSealsShareTheSubjectsKey(t *testing.T) {
	t.Parallel()
	url := database(t)
	nodes := []*vault.Vault{node(t, url, master), node(t, url, master)}
	sealed := make([][]event.Personal, 16)
	for _, err := range race(len(sealed), func(i int) (err error) {
		values := make([]event.Personal, 20) // every second writer uses another order
		for n := range values {
			values[n] = event.NewPersonal(fmt.Sprintf("user-%d", (n*(1+i%2*18))%20), address)
		}
		sealed[i], err = event.MapSealed(values, sealer(t.Context(), nodes[i%2]))
		return err
	}) {
		require.NoError(t, err)
	}
	keys := pgtest.Value[int](t, connect(t, url), `select count(*) from vault.key`)
	require.Equal(t, 20, keys)
	for i, values := range sealed {
		for _, p := range values {
			requireText(t, nodes[(i+1)%2], p, address)
		}
	}
}

func TestChangedOrMovedValuesDoNotOpen(t *testing.T) {
	t.Parallel()
	v := node(t, database(t), master)
	asha, ravi := formOf(t, seal(t, v, "user-1", address)), formOf(t, seal(t, v, "user-2", address))
	secrets, err := event.MapSealed([]event.Secret{event.NewSecret("user-1", address)}, sealer(t.Context(), v))
	require.NoError(t, err)
	secret := formOf(t, secrets[0])

	swapped, changed, short, declassed := asha, asha, asha, secret
	swapped.Subject = ravi.Subject
	changed.Box = bytes.Clone(asha.Box)
	changed.Box[14] ^= 1
	short.Box = asha.Box[:5]
	declassed.Class = asha.Class
	for name, f := range map[string]form{"swapped": swapped, "changed": changed, "short": short, "declassed": declassed} {
		p := f.personal(t)
		err := v.OpenPersonal(t.Context(), []*event.Sealed{&p.Sealed})
		require.ErrorIs(t, err, vault.ErrChanged, name)
		require.NotContains(t, err.Error(), address)
		_, err = v.OpenValue(t.Context(), p.Sealed)
		require.ErrorIs(t, err, vault.ErrChanged, name)
	}
}

func TestChangedOrMovedKeysDoNotOpen(t *testing.T) {
	t.Parallel()
	url := database(t)
	v, pool := node(t, url, master), connect(t, url)
	p := seal(t, v, "user-1", address)
	seal(t, v, "user-2", address)
	_, err := v.Named(t.Context(), "jwt", 32)
	require.NoError(t, err)
	for _, sql := range []string{
		`update vault.key set wrapped = (select wrapped from vault.key where subject = 'user-2') where subject = 'user-1'`,
		`update vault.key set wrapped = (select wrapped from vault.named) where subject = 'user-1'`,
		`update vault.key set wrapped = 'x' where subject = 'user-1'`,
	} {
		pgtest.Exec(t, pool, sql)
		require.ErrorIs(t, v.OpenPersonal(t.Context(), []*event.Sealed{&p.Sealed}), vault.ErrChanged)
	}
	pgtest.Exec(t, pool, `update vault.named set name = 'other'`)
	_, err = v.Named(t.Context(), "other", 32)
	require.ErrorIs(t, err, vault.ErrChanged)
}

func TestMissingKeyIsNotAnErasure(t *testing.T) {
	t.Parallel()
	p := seal(t, node(t, database(t), master), "user-1", address)
	err := node(t, database(t), master).OpenPersonal(t.Context(), []*event.Sealed{&p.Sealed})
	require.ErrorIs(t, err, vault.ErrNoKey)
	require.False(t, p.Erased())
}

type enrolled struct {
	Email event.Personal `json:"email"`
	Token event.Secret   `json:"token"`
}

func (enrolled) Evolve(s struct{}) struct{} { return s }

func TestTablesAndLogHaveNoClearValueOrKey(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url)
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	v, err := vault.Open(t.Context(), pool, master, log)
	require.NoError(t, err)
	store, err := postgres.Open(t.Context(), pool, log)
	require.NoError(t, err)
	defer store.Close()

	kind := event.NewKind("pupil", event.Of[enrolled]("Enrolled", 1))
	events, err := event.MapSealed([]event.Event[struct{}]{enrolled{event.NewPersonal("user-1", address),
		event.NewSecret("user-1", "s3cret")}},
		sealer(t.Context(), v))
	require.NoError(t, err)
	encoded, err := kind.Encode(uuid.New(), events[0], event.Meta{})
	require.NoError(t, err)
	_, err = store.Append(t.Context(), eventstore.To("pupil-1", eventstore.NoStream, encoded))
	require.NoError(t, err)
	named, err := v.Named(t.Context(), "jwt", 32)
	require.NoError(t, err)
	_, err = v.HMAC(t.Context(), "idempotency", []byte(address))
	require.NoError(t, err)
	tables := dump(t, pool)
	require.Contains(t, tables, `"subject":"user-1"`)
	require.NoError(t, v.Erase(t.Context(), "user-1"))
	tables += dump(t, pool) + lines.String()

	for _, hidden := range [][]byte{[]byte(address), []byte("s3cret"), master, named} {
		require.NotContains(t, tables, string(hidden))
		require.NotContains(t, tables, hex.EncodeToString(hidden))
		require.NotContains(t, tables, base64.StdEncoding.EncodeToString(hidden))
	}
}

// dump returns every row of every table as text.
func dump(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	queries := pgtest.Values[string](t, pool, `
		select format('select t::text from %I.%I t', table_schema, table_name) from information_schema.tables
		where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`)
	require.NotEmpty(t, queries)
	var all bytes.Buffer
	for _, q := range queries {
		lines := pgtest.Values[string](t, pool, q)
		for _, l := range lines {
			all.WriteString(l + "\n")
		}
	}
	// Postgres doubles the quotes inside a row's text.
	return string(bytes.ReplaceAll(all.Bytes(), []byte(`""`), []byte(`"`)))
}
