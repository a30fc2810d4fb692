package domain_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bahi/domain"
	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/book"
	"bahi/domain/ledger/karigar"
	"bahi/domain/ledger/khata"
	"bahi/domain/patch"
	"bahi/domain/unit"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "write the golden files that are missing; those that are there stay as they are")

const golden = "testdata/events"

// fileName is <Type>.v<version>.json, or <Type>.v<version>.<what it shows>.json beside it.
var fileName = regexp.MustCompile(`^([A-Za-z]+)\.v([1-9][0-9]*)(\.[a-z-]+)?\.json$`)

type goldenFile struct {
	name    string
	of      event.TypeInfo
	version int
	data    []byte // without its white space, as the log has it
}

func goldenFiles(t *testing.T) map[string][]goldenFile {
	t.Helper()
	entries, err := os.ReadDir(golden)
	require.NoError(t, err)
	byType := map[string][]goldenFile{}
	for _, entry := range entries {
		parts := fileName.FindStringSubmatch(entry.Name())
		require.NotNil(t, parts, "%s is not named like BankRowAdded.v1.json", entry.Name())
		of, known := domain.Catalogue.Lookup(parts[1])
		require.True(t, known, "%s is of no type in the catalogue: add its Kind to domain/catalogue.go, a ledger to domain/ledger/ledgers.go",
			entry.Name())
		version, err := strconv.Atoi(parts[2])
		require.NoError(t, err)
		require.LessOrEqual(t, version, of.Version, "%s: that version is yet to come", entry.Name())
		text := worktest.File(t, filepath.Join(golden, entry.Name()))
		var data bytes.Buffer
		require.NoError(t, json.Compact(&data, text), entry.Name())
		byType[of.Name] = append(byType[of.Name], goldenFile{entry.Name(), of, version, data.Bytes()})
	}
	return byType
}

func TestEveryVersionOfEveryEventHasAGoldenFile(t *testing.T) {
	t.Parallel()
	files := goldenFiles(t)
	for _, of := range domain.Catalogue.All() {
		for version := 1; version <= of.Version; version++ {
			if slices.ContainsFunc(files[of.Name], func(f goldenFile) bool { return f.version == version }) {
				continue
			}
			name := fmt.Sprintf("%s.v%d.json", of.Name, version)
			if !*update {
				t.Errorf("%s is missing: write it, or start from what go test ./domain -update makes of the newest version", name)
				continue
			}
			require.Equal(t, of.Version, version, "%s: an old version is to be written by hand, from a log that has it", name)
			text, err := json.MarshalIndent(fullEvent(of), "", "  ")
			require.NoError(t, err)
			file, err := os.OpenFile(filepath.Join(golden, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			require.NoError(t, err)
			_, err = file.Write(append(text, '\n'))
			require.NoError(t, err)
			require.NoError(t, file.Close())
		}
	}
}

func TestEveryGoldenFileIsLiftedAndDecoded(t *testing.T) {
	t.Parallel()
	for _, files := range goldenFiles(t) {
		for _, f := range files {
			r, err := domain.Catalogue.Decode(event.Stored{
				Position: 1, Stream: f.of.Category + "-1", Type: f.of.Name, Data: f.data, Meta: fmt.Appendf(nil, `{"schema":%d}`, f.version),
			})
			require.NoError(t, err, f.name)
			require.Equal(t, f.of.Go, reflect.TypeOf(r.Data), f.name)
			if f.version == f.of.Version {
				today, err := json.Marshal(r.Data)
				require.NoError(t, err, f.name)
				require.Equal(t, string(f.data), string(today), "%s: today's program writes other bytes", f.name)
			}
		}
	}
}

// A field without a golden file could be renamed unnoticed.
func TestEveryFieldIsInAGoldenFileOfTheNewestVersion(t *testing.T) {
	t.Parallel()
	for name, files := range goldenFiles(t) {
		shown := map[string]bool{}
		for _, f := range files {
			if f.version == f.of.Version {
				maps.Copy(shown, fieldsOf(t, f.data))
			}
		}
		data, err := json.Marshal(fullEvent(files[0].of))
		require.NoError(t, err)
		for _, field := range slices.Sorted(maps.Keys(fieldsOf(t, data))) {
			require.True(t, shown[field], "%s: no golden file of version %d has %s", name, files[0].of.Version, field)
		}
	}
}

// fieldsOf returns the paths to all values that are not null.
func fieldsOf(t *testing.T, data []byte) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(path+"."+name, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path+"[]", inner)
			}
		case nil:
		default:
			found[path] = true
		}
	}
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	walk("", value)
	return found
}

// fullEvent returns an event of the type with all fields set. The entries depend on the ledger.
func fullEvent(of event.TypeInfo) any {
	l := ledger.Of(of.Category)
	if of.Category == khata.Kind.Category() { // its rows are of any ledger
		l = karigar.Ledger
	}
	if l == nil {
		return full(of.Go)
	}
	in, out := l.Entries()
	sides := map[string]string{"In": entriesLike(in), "Out": entriesLike(out)}
	return filled(of.Go, func(name string, field reflect.Value) bool {
		switch field.Interface().(type) {
		case book.Side:
			field.Set(reflect.ValueOf(book.StoredSide(sides[name], book.Effect{})))
			return true
		case book.Warnings:
			if l.Metal {
				field.SetString(`[{"field":"in_entries[0].fine_weight","message":"text","given":1.5,"computed":1.25}]`)
			}
			return true
		case *int:
			return l.Types == 0
		default:
			return false
		}
	})
}

func entriesLike(entry reflect.Type) string {
	text, err := json.Marshal([]any{full(entry)})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// full returns a value of the type with all fields set.
func full(of reflect.Type) any {
	return filled(of, func(string, reflect.Value) bool { return false })
}

// filled sets all fields, except those that own sets itself.
func filled(of reflect.Type, own func(name string, field reflect.Value) bool) any {
	v := reflect.New(of).Elem()
	fill(v, "", own)
	return v.Interface()
}

// samples are values of types whose valid values do not follow from their kind.
var samples = map[reflect.Type]any{
	reflect.TypeFor[unit.Date]():      unit.DateOf(time.Date(2025, 3, 31, 0, 0, 0, 0, time.UTC)),
	reflect.TypeFor[unit.Money]():     unit.Money(125050),
	reflect.TypeFor[unit.Grams]():     unit.Grams(10125),
	reflect.TypeFor[unit.Percent]():   unit.Percent(99500),
	reflect.TypeFor[time.Time]():      time.Date(2025, 3, 31, 18, 30, 0, 123456000, time.UTC),
	reflect.TypeFor[uuid.UUID]():      uuid.MustParse("0195e8a0-7c1e-7000-8000-0000000000aa"),
	reflect.TypeFor[[]byte]():         []byte("bytes"),
	reflect.TypeFor[patch.State]():    patch.Given,
	reflect.TypeFor[event.Personal](): event.Personal{Sealed: sealed(event.NewPersonal("user-1", "text").Sealed)},
	reflect.TypeFor[event.Secret]():   event.Secret{Sealed: sealed(event.NewSecret("channel-1", "text").Sealed)},
}

func sealed(s event.Sealed) event.Sealed {
	s.SetCiphertext(1, []byte("nonce, ciphertext and tag"))
	return s
}

func fill(v reflect.Value, name string, own func(name string, field reflect.Value) bool) {
	if own(name, v) {
		return
	}
	if sample, ok := samples[v.Type()]; ok {
		v.Set(reflect.ValueOf(sample))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(12)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(12)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, own)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name, own)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), name, own)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, "", own)
		fill(value, name, own)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), v.Type().Field(i).Name, own)
			}
		}
	default:
		panic(fmt.Sprintf("no sample of %s: floats, interfaces and the like have no place in an event", v.Type()))
	}
}

func TestEventsOfTheCatalogueHoldNoFloat(t *testing.T) {
	t.Parallel()
	for _, of := range domain.Catalogue.All() {
		require.NotPanics(t, func() { fullEvent(of) }, of.Name)
	}
	require.Panics(t, func() { full(reflect.TypeFor[struct{ Price float64 }]()) })
	require.Panics(t, func() { full(reflect.TypeFor[struct{ Any []any }]()) })
}

// Logs have these names already: a changed name loses events.
func TestNamesAreInTheFormThatReadersExpect(t *testing.T) {
	t.Parallel()
	for _, of := range domain.Catalogue.All() {
		require.Regexp(t, `^([A-Z][a-z]*)+$`, of.Name)
		require.Regexp(t, `^[a-z]+$`, of.Category)
	}
}

func TestEveryNameIsDocumented(t *testing.T) {
	t.Parallel()
	page := worktest.File(t, "../docs/events.md")
	missing := map[string][]string{}
	for _, of := range domain.Catalogue.All() {
		if !strings.Contains(string(page), "`"+of.Name+"`") || !strings.Contains(string(page), "| `"+of.Category+"-<") {
			missing[of.Category] = append(missing[of.Category], "`"+of.Name+"`")
		}
	}
	for category, names := range missing {
		t.Errorf("add to the table of docs/events.md: | `%s-<id>` | what it is | %s |", category, strings.Join(names, ", "))
	}
}

// Without this test a claim could be missing in the catalogue, and auditors could not read it.
func TestEveryClaimIsInTheCatalogue(t *testing.T) {
	t.Parallel()
	categories := map[string]bool{}
	for _, of := range domain.Catalogue.All() {
		categories[of.Category] = true
	}
	made := regexp.MustCompile(`claims\.New\[\w+\]\("(\w+)"`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range made.FindAllStringSubmatch(string(text), -1) {
			if !categories[found[1]] {
				t.Errorf("%s: add the Kind of the claims %q to domain/catalogue.go", path, found[1])
			}
		}
		return err
	}))
}

// Values that no event ends stay in the log and in tables permanently.
func TestEveryKindWithPersonalFieldsSaysWhoseTheyAreAndEndsThem(t *testing.T) {
	t.Parallel()
	for _, complaint := range unended(domain.Catalogue) {
		t.Error(complaint)
	}
}

// unended returns the kinds whose sealed fields no event ends.
func unended(c *event.Registry) (complaints []string) {
	ended := map[event.SubjectType]bool{}
	sealing := map[string][]string{}
	for _, of := range c.All() {
		if event.HoldsSealed(of.Go) {
			sealing[of.Category] = append(sealing[of.Category], of.Name)
		}
		if ending, ends := fullEvent(of).(event.ErasureTrigger); ends {
			category, _ := event.SplitStream(ending.Erases("1").Subject)
			ended[event.SubjectType(category)] = true
		}
	}
	for _, k := range c.Kinds() {
		if events := sealing[k.Category()]; len(events) > 0 && len(k.Subjects()) == 0 {
			complaints = append(complaints,
				fmt.Sprintf("kind %s has personal or secret fields in %v and does not say whose they are: add Sealing", k.Category(), events))
		}
		for _, s := range k.Subjects() {
			if !ended[s] {
				complaints = append(complaints, fmt.Sprintf("kind %s seals values of %s, which no event ends: give the event that erases them the "+
					"method Ends", k.Category(), s))
			}
		}
	}
	return complaints
}

type (
	noted   struct{ Phone event.Personal }
	dropped struct{}
)

func (noted) Evolve(int) int                   { return 1 }
func (dropped) Evolve(int) int                 { return 0 }
func (dropped) Erases(id string) event.Erasure { return event.Erasure{Subject: "person-" + id} }

func TestAForgottenErasureIsNamed(t *testing.T) {
	t.Parallel()
	complaints := func(k *event.Kind[int]) []string { return unended(event.NewCatalogue(k)) }
	noting, dropping := event.Of[noted]("NoteTaken", 1), event.Of[dropped]("NoteDropped", 1)
	require.Equal(t, []string{"kind note has personal or secret fields in [NoteTaken] and does not say whose they are: add Sealing"},
		complaints(event.NewKind("note", noting, dropping)))
	require.Equal(t, []string{"kind note seals values of person, which no event ends: give the event that erases them the method Ends"},
		complaints(event.NewKind("note", noting).Sealing("person")))
	require.Empty(t, complaints(event.NewKind("note", noting, dropping).Sealing("person")))
	require.ErrorContains(t, event.NewKind("note", noting).MaySeal([]*event.Sealed{new(event.NewPersonal("person-1", "+91").Sealed)}),
		"add Sealing")
}
