// Package mail sends mail: to a server by SMTP or, if none is configured, into files.
//
// A message has one recipient. So a server's response is about one person, a retried job sends nothing twice to others, and an erasure
// deletes whole messages.
//
// No error of this package contains an address, a name or a server's free text, because jobs keep their errors after the person is erased.
package mail

import (
	"errors"
	"fmt"
	netmail "net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
)

// Message is a mail to one address. The sender is a setting.
type Message struct {
	// ID identifies the message: 1 to 100 of A-Z a-z 0-9 . _ -, a letter or digit first. It becomes the Message-ID. A retried job MUST use
	// the same ID, so that receivers recognise the copy.
	ID      string
	To      netmail.Address
	Subject string
	Text    string // UTF-8; its line ends become CRLF
}

// Permanent is the error of a message that would be refused again. After any other error of Send, try again.
type Permanent struct{ Reason error }

func (p *Permanent) Error() string { return p.Reason.Error() }
func (p *Permanent) Unwrap() error { return p.Reason }

var (
	idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	// addressForm is a Mailbox of RFC 5321, section 4.1.2, with a Dot-string and a Domain: no quoted local part, no
	// address literal, ASCII only.
	addressForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*" +
		`@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
)

const longestAddress = 254 // octets: a path of RFC 5321, section 4.5.3.1.3, without its brackets

// check fails with [Permanent] if a field would break out of its header, or no server would accept it.
func (m Message) check() error {
	refused := func(what string) error { return &Permanent{Reason: errors.New("mail refused: " + what)} }
	if !idForm.MatchString(m.ID) {
		return refused("an id is 1 to 100 of A-Z a-z 0-9 . _ -, a letter or digit first")
	}
	if err := checkAddress(m.To); err != nil {
		return refused("recipient: " + err.Error())
	}
	if err := checkHeaderText(m.Subject); err != nil {
		return refused("subject: " + err.Error())
	}
	if m.Text == "" {
		return refused("it has no text")
	}
	if !utf8.ValidString(m.Text) {
		return refused("its text is not UTF-8")
	}
	return nil
}

func checkAddress(a netmail.Address) error {
	if len(a.Address) > longestAddress || !addressForm.MatchString(a.Address) {
		return errors.New("not an address")
	}
	return checkHeaderText(a.Name)
}

func checkHeaderText(text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return errors.New("a control character or broken UTF-8")
	}
	return nil
}

// compose returns the message in the form of RFC 5322. It must have passed check.
func (m Message) compose(from netmail.Address, at time.Time, encoding gomail.Encoding) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithEncoding(encoding), gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(headerAddress(from))
	msg.ToMailAddress(headerAddress(m.To))
	_, domain, _ := strings.Cut(from.Address, "@")
	msg.SetMessageIDWithValue(m.ID + "@" + domain)
	msg.SetDateWithValue(at)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: asks machines not to reply
	msg.Subject(m.Subject)
	msg.SetBodyString(gomail.TypeTextPlain, crlf(m.Text))
	return msg
}

// headerAddress replaces a backslash in the name by a slash. net/mail's Address.String leaves it in an encoded word, where RFC 2047
// (section 5, rule 3) forbids it, and no parser reads the result.
func headerAddress(a netmail.Address) *netmail.Address {
	return &netmail.Address{Name: strings.ReplaceAll(a.Name, `\`, "/"), Address: a.Address}
}

// lf makes every line end a line feed, crlf a CRLF as mail requires.
func lf(text string) string   { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text) }
func crlf(text string) string { return strings.ReplaceAll(lf(text), "\n", "\r\n") }

// ParseSender parses the address of a sender, with or without a name before it (RFC 5322).
func ParseSender(text string) (netmail.Address, error) {
	if text == "" {
		return netmail.Address{}, errors.New("the sender is missing: expected an address such as bahi@example.org")
	}
	from, err := netmail.ParseAddress(text)
	if err != nil {
		return netmail.Address{}, fmt.Errorf("sender %q: %w", text, err)
	}
	if err := checkAddress(*from); err != nil {
		return netmail.Address{}, fmt.Errorf("sender %q: %w", text, err)
	}
	return *from, nil
}
