package apptest

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	endian "encoding/binary"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// prefixSize is the length of the looked-up prefix of a trace, in bytes.
const prefixSize = 4

// traces are the byte strings that identify a person, by their first bytes.
type traces struct {
	t     *testing.T
	begin [1 << 16]bool // the first two bytes of any
	from  map[[prefixSize]byte][]sign
}

type sign struct {
	bytes string
	of    string // the text and its form
}

func NewTraces(t *testing.T) *traces { return &traces{t: t, from: map[[prefixSize]byte][]sign{}} }

// add adds a byte string to look for.
func (x *traces) add(of, bytes string) {
	x.t.Helper()
	require.GreaterOrEqual(x.t, len(bytes), prefixSize, of)
	x.begin[endian.LittleEndian.Uint16([]byte(bytes))] = true
	prefix := [prefixSize]byte([]byte(bytes))
	x.from[prefix] = append(x.from[prefix], sign{bytes, of})
}

// Know adds texts in every form in which a program could have stored them.
func (x *traces) Know(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.add(text, text)
		for _, cased := range slices.Compact([]string{text, strings.ToLower(text), strings.ToUpper(text)}) {
			x.add(text+" in another case", cased)
			x.add(text+" in UTF-16", InUTF16(endian.LittleEndian, cased))
			x.add(text+" in UTF-16", InUTF16(endian.BigEndian, cased))
			x.add(text+" in hex", hex.EncodeToString([]byte(cased)))
			x.add(text+" escaped", url.QueryEscape(cased))
			for shift := range 3 { // a text may begin at any bit of the base64 around it
				inside := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00\x00"[:shift] + cased))
				x.add(text+" in base64", inside[(shift*8+5)/6:len(inside)-1])
			}
			of256, of1, of5 := sha256.Sum256([]byte(cased)), sha1.Sum([]byte(cased)), md5.Sum([]byte(cased))
			for name, sum := range map[string][]byte{"SHA-256": of256[:], "SHA-1": of1[:], "MD5": of5[:]} {
				x.add(name+" of "+text, string(sum))
				x.add(name+" of "+text+" in hex", hex.EncodeToString(sum))
				x.add(name+" of "+text+" in hex", strings.ToUpper(hex.EncodeToString(sum)))
				x.add(name+" of "+text+" in base64", base64.RawStdEncoding.EncodeToString(sum))
				x.add(name+" of "+text+" in base64", base64.RawURLEncoding.EncodeToString(sum))
			}
		}
	}
}

func InUTF16(order endian.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// In returns the traces found in data, each once.
func (x *traces) In(where string, data []byte) (found []string) {
	for i := range max(0, len(data)-prefixSize+1) {
		if !x.begin[endian.LittleEndian.Uint16(data[i:])] {
			continue
		}
		for _, known := range x.from[[prefixSize]byte(data[i:])] {
			if len(data)-i >= len(known.bytes) && string(data[i:i+len(known.bytes)]) == known.bytes {
				found = append(found, where+": "+known.of)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// InFiles searches every file of a folder, and its name. It ignores files that disappear meanwhile.
func (x *traces) InFiles(folder string) (found []string) {
	x.t.Helper()
	files, bytes := 0, 0
	require.NoError(x.t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		files, bytes = files+1, bytes+len(data)
		found = append(found, x.In(strings.TrimPrefix(path, folder), append([]byte(path+"\n"), data...))...)
		return nil
	}))
	x.t.Logf("%d files, %d MB, %d traces", files, bytes>>20, len(found))
	return found
}

// InDatabase searches every table of every schema, including Postgres's own and the log.
func (x *traces) InDatabase(url string) (found []string) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), url)
	require.NoError(x.t, err)
	defer conn.Close(x.t.Context())
	rows, _ := conn.Query(x.t.Context(), `
		select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'm')`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(x.t, err)
	require.Contains(x.t, tables, "log.event")
	for _, table := range tables {
		rows, _ := conn.Query(x.t.Context(), `select row::text from `+table+` row`)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(x.t, err, table)
		found = append(found, x.In(table, []byte(strings.Join(all, "\n")))...)
	}
	return found
}
