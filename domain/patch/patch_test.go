package patch_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/patch"
)

func TestAFieldChangesWhatItNames(t *testing.T) {
	t.Parallel()
	old := "old"
	absent, null, given := patch.Field[string]{}, patch.Clear[string](), patch.Set("new")
	require.Equal(t, []bool{false, true, true}, []bool{absent.Present(), null.Present(), given.Present()})
	require.Equal(t, &old, absent.Of(&old))
	require.Nil(t, null.Of(&old))
	require.Equal(t, "new", *given.Of(&old))
	require.Equal(t, []string{"old", "", "new"}, []string{absent.Or(old), null.Or(old), given.Or(old)})
}

func TestAnEventKeepsWhatAbsentAndNullAre(t *testing.T) {
	t.Parallel()
	type changed struct {
		Name patch.Field[string] `json:"name,omitzero"`
		Kind patch.Field[int]    `json:"kind,omitzero"`
	}
	for text, e := range map[string]changed{
		`{}`:                       {},
		`{"name":null,"kind":0}`:   {Name: patch.Clear[string](), Kind: patch.Set(0)},
		`{"name":"","kind":null}`:  {Name: patch.Set(""), Kind: patch.Clear[int]()},
		`{"name":"Asha","kind":7}`: {Name: patch.Set("Asha"), Kind: patch.Set(7)},
	} {
		written, err := json.Marshal(e)
		require.NoError(t, err)
		require.Equal(t, text, string(written))
		var read changed
		require.NoError(t, json.Unmarshal(written, &read))
		require.Equal(t, e, read)
	}
	var wrong changed
	require.Error(t, json.Unmarshal([]byte(`{"kind":"x"}`), &wrong))
}

func TestWhatChangesNothingIsAbsent(t *testing.T) {
	t.Parallel()
	require.Equal(t, patch.Field[string]{}, patch.Differing(patch.Set("same"), "same"))
	require.Equal(t, patch.Field[string]{}, patch.Differing(patch.Clear[string](), ""))
	require.Equal(t, patch.Field[string]{}, patch.Differing(patch.Field[string]{}, "same"))
	require.Equal(t, patch.Set("new"), patch.Differing(patch.Set("new"), "old"))
	require.Equal(t, patch.Clear[string](), patch.Differing(patch.Clear[string](), "old"))
}

func TestOnlyAGivenValueIsPutInOrder(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	upper := func(s string) (string, error) {
		if s == "" {
			return "", wrong
		}
		return strings.ToUpper(s), nil
	}
	for _, f := range []patch.Field[string]{{}, patch.Clear[string]()} {
		same, err := f.With(upper)
		require.NoError(t, err)
		require.Equal(t, f, same)
	}
	f, err := patch.Set("a").With(upper)
	require.NoError(t, err)
	require.Equal(t, patch.Set("A"), f)
	_, err = patch.Set("").With(upper)
	require.ErrorIs(t, err, wrong)
}
