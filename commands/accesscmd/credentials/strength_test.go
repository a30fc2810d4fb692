package credentials_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bahi/commands/accesscmd/credentials"
	"bahi/domain/fault"
)

var asha = credentials.Person{Email: "a.rao@example.org", Names: []string{"Asha", "Rao"}}

func TestWeakPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	for message, passwords := range map[string][]string{
		"at least 8 characters are needed":   {"", "k7#mQ2z", "ｋ７＃ｍＱ２ｚ", "नमस्ते"},
		"at most 128 characters are allowed": {strings.Repeat("k7#mQ2zp", 16) + "x", strings.Repeat("é", 129)},
		"must not contain your name or email address": {
			"my.asha.12", "ASHA-2026!", "a.rao@2026", "xxA.RAOxx", "ａｓｈａ-2026",
		},
		"must not be one character repeated": {"zzzzzzzz", "ZzZzZzZz", "ओओओओओओओओ", "        "},
		"must not be a plain sequence": {
			"abcdefgh", "HGFEDCBA", "12345678", "98765432", "78901234", "21098765", "qwertyui", "POIUYTREW", "asdfghjkl", "zxcvbnmzxcvbnm",
			"uiopasdfgh", "कखगघङचछज", "１２３４５６７８", strings.Repeat("1234567890", 12),
		},
		"must not be one of the most common passwords": {"password", "PassWord1", "iloveyou", "Trustno1", "ｐａｓｓｗｏｒｄ"},
	} {
		for _, password := range passwords {
			require.Equal(t, fault.Fields(fault.Field{Field: "new_password", Message: message}),
				n.Passwords.Check("new_password", password, asha), "%q", password)
		}
	}
}

func TestStrongPasswordsAreAccepted(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	for _, password := range []string{
		"k7#mQ2zp", "seven brass hooks", "सात पीतल हुक", "abcdefgi", "1234568z", "qwertyuo1", "aaaaaaab", strings.Repeat("k7#mQ2zp", 16),
		"  k7#mQ  ",
		"grao9rao!", // a name of three letters occurs by chance
	} {
		require.NoError(t, n.Passwords.Check("password", password, asha), "%q", password)
	}
	whole := credentials.Person{Email: "9@example.org", Names: []string{"", " ", "Li"}}
	require.NoError(t, n.Passwords.Check("password", "Li9 k7#mQ2zp", whole))
	require.Error(t, n.Passwords.Check("password", "Venkatraman", credentials.Person{Email: "venkatraman@example.org"}))
	require.Error(t, n.Passwords.Check("password", "xx98250 12345", credentials.Person{Email: "98250@example.org"}),
		"digits count as a part too")
}

func TestMinimumIsASetting(t *testing.T) {
	t.Parallel()
	s := quick()
	s.MinPassword = 15
	n := open(t, database(t), newClock(), s)
	require.EqualError(t, n.Passwords.Check("password", "14 characters!", asha),
		"Validation error; password: at least 15 characters are needed")
	require.NoError(t, n.Passwords.Check("password", "15 characters!!", asha))
}

func TestEveryCommonPasswordIsRefusedInAnyCase(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	list, err := os.ReadFile("common_passwords.txt")
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		seen++
		word := strings.TrimSuffix(line, "\n")
		require.Equal(t, word, strings.ToLower(credentials.Normalise(word)))
		require.Error(t, n.Passwords.Check("password", word, credentials.Person{}), "%q", word)
		require.Error(t, n.Passwords.Check("password", strings.ToUpper(word), credentials.Person{}), "%q", word)
	}
	require.Greater(t, seen, 10_000)
}

func TestPasswordsAroundANameAreRefused(t *testing.T) {
	t.Parallel()
	n, _ := single(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z]{4,20}`).Draw(t, "name")
		around := rapid.StringMatching(`[!-~]{4,20}`)
		password := around.Draw(t, "before") + rapid.SampledFrom([]string{name, strings.ToUpper(name), strings.ToLower(name)}).Draw(t,
			"as") + around.Draw(t, "after")
		require.Error(t, n.Passwords.Check("password", password, credentials.Person{Names: []string{name}}))
		require.Error(t, n.Passwords.Check("password", password, credentials.Person{Email: name + "@example.org"}))
	})
}
