package mail_test

import (
	"bytes"
	"context"
	"io"
	"mime"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/providers/mail"
)

var (
	moment = time.Date(2026, 4, 1, 9, 30, 0, 250e6, time.UTC)
	sender = netmail.Address{Name: "बही", Address: "bahi@workshop.example"}
	asha   = netmail.Address{Name: "आशा राव", Address: "asha@mill.example"}
)

func clock() time.Time { return moment }

func verification() mail.Message {
	return mail.Message{
		ID: "verify-17", To: asha,
		Subject: "अपना ईमेल पता सत्यापित करें: a subject that is too long for one line of a header",
		Text:    "नमस्ते आशा,\n\nhttps://workshop.example/verify-email?token=" + strings.Repeat("aB3_", 16) + "\n.\n..dots\n",
	}
}

// sends is the suite for both senders.
func sends(t *testing.T, send func(context.Context, mail.Message) error, arrived func() []byte) {
	t.Helper()
	t.Run("a text arrives unchanged in a complete message", func(t *testing.T) {
		m := verification()
		require.NoError(t, send(t.Context(), m))
		raw := arrived()
		require.NotContains(t, strings.ReplaceAll(string(raw), "\r\n", ""), "\n", "every line ends in CRLF")
		head, kind, text := decode(t, raw)
		require.Equal(t, "<verify-17@workshop.example>", head.Get("Message-Id"))
		require.Equal(t, "1.0", head.Get("Mime-Version"))
		require.Equal(t, "auto-generated", head.Get("Auto-Submitted"))
		date, err := head.Date()
		require.NoError(t, err)
		require.True(t, date.Equal(moment.Truncate(time.Second)))
		for name, want := range map[string]netmail.Address{"From": sender, "To": asha} {
			got, err := head.AddressList(name)
			require.NoError(t, err)
			require.Equal(t, []*netmail.Address{&want}, got)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(head.Get("Subject"))
		require.NoError(t, err)
		require.Equal(t, m.Subject, subject)
		require.Equal(t, []string{"text/plain", m.Text}, []string{kind, text})
	})
	t.Run("a message that breaks its header, or that no server accepts, is refused for good", func(t *testing.T) {
		for what, spoil := range map[string]func(*mail.Message){
			"subject: a control character or broken UTF-8": func(
				m *mail.Message) {
				m.Subject = "hello\r\nBcc: eve@evil.example"
			},
			"subject: a control character or broken UTF-8 (LF)":    func(m *mail.Message) { m.Subject = "hello\n\nbody" },
			"subject: a control character or broken UTF-8 (bytes)": func(m *mail.Message) { m.Subject = "\xff" },
			"recipient: a control character or broken UTF-8": func(
				m *mail.Message) {
				m.To.Name = "Asha\r\nBcc: eve@evil.example"
			},
			"recipient: not an address": func(
				m *mail.Message) {
				m.To.Address = "asha@mill.example>\r\nBcc: <eve@evil.example"
			},
			"recipient: not an address (two)": func(
				m *mail.Message) {
				m.To.Address = "asha@mill.example, eve@evil.example"
			},
			"recipient: not an address (none)":        func(m *mail.Message) { m.To.Address = "" },
			"recipient: not an address (end of line)": func(m *mail.Message) { m.To.Address += "\n" },
			"recipient: not an address (long)": func(m *mail.Message) {
				m.To.Address = strings.Repeat("a",
					254) + m.To.Address
			},
			"an id is 1 to 100 of A-Z a-z 0-9 . _ -, a letter or digit first":         func(m *mail.Message) { m.ID = "../../../etc/cron.d/x" },
			"an id is 1 to 100 of A-Z a-z 0-9 . _ -, a letter or digit first (empty)": func(m *mail.Message) { m.ID = "" },
			"an id is 1 to 100 of A-Z a-z 0-9 . _ -, a letter or digit first (line)":  func(m *mail.Message) { m.ID = "a\n" },
			"it has no text":        func(m *mail.Message) { m.Text = "" },
			"its text is not UTF-8": func(m *mail.Message) { m.Text = "\xff" },
		} {
			m := verification()
			spoil(&m)
			err := send(t.Context(), m)
			var refused *mail.Permanent
			require.ErrorAs(t, err, &refused, what)
			why, _, _ := strings.Cut(what, " (")
			require.EqualError(t, err, "mail refused: "+why)
		}
	})
}

// decode parses a message without the library that wrote it. Content has line feeds.
func decode(t *testing.T, raw []byte) (head netmail.Header, kind, text string) {
	t.Helper()
	parsed, err := netmail.ReadMessage(bytes.NewReader(raw))
	require.NoError(t, err)
	kind, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	require.NoError(t, err)
	return parsed.Header, kind, content(t, parsed.Header.Get("Content-Transfer-Encoding"), params, parsed.Body)
}

func content(t *testing.T, encoding string, params map[string]string, body io.Reader) string {
	t.Helper()
	require.Equal(t, "utf-8", strings.ToLower(params["charset"]))
	switch encoding {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	default:
		require.Equal(t, "8bit", encoding)
	}
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
