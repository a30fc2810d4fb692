package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/url"
	"slices"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// SMTP sends through a mail server (RFC 5321, submission by RFC 6409). It opens a connection for each message.
type SMTP struct {
	host     string
	from     netmail.Address
	timeout  time.Duration
	implicit *tls.Config // nil unless TLS begins before SMTP (RFC 8314, section 3)
	options  []gomail.Option
	now      func() time.Time
}

// patience is the maximum time of a server for one message, within the 30 s of a job. A server that scans messages first may exceed it and
// still deliver: the retry then sends a second copy (RFC 5321, section 4.5.3.2.6).
const patience = 25 * time.Second

// NewSMTP parses SMTP_URL. It does not connect.
//
//	smtp://user:password@host:587?from=Bahi+<bahi@example.com>
//	smtps://user:password@host:465?from=bahi@example.com
//
// from is the sender. tls is mandatory (STARTTLS or no mail, the default), opportunistic or none, and only with smtp://. timeout limits one
// message, connecting included; the default is 25s. Omit user and password if the server requires none. Without TLS, only methods that hide
// the password are used.
//
// Certificates are checked against roots, or the system's if nil. An error never quotes the URL.
func NewSMTP(rawURL string, roots *x509.CertPool, now func() time.Time) (*SMTP, error) {
	u, err := url.Parse(rawURL)
	if err != nil { // the parser's error quotes the password
		return nil, errors.New("SMTP_URL is invalid; expected smtp://user:password@host:port?from=address")
	}
	s := &SMTP{host: u.Hostname(), timeout: patience, now: now}
	if s.host == "" {
		return nil, errors.New("SMTP_URL names no host")
	}
	security := &tls.Config{ServerName: s.host, RootCAs: roots, MinVersion: tls.VersionTLS12}
	port, policy := gomail.DefaultPortTLS, gomail.TLSMandatory
	if u.Scheme == "smtps" {
		// The library asks for the TLS state of our connection only under this policy. Inside TLS no server offers STARTTLS.
		port, policy, s.implicit = gomail.DefaultPortSSL, gomail.TLSOpportunistic, security
	} else if u.Scheme != "smtp" {
		return nil, errors.New("SMTP_URL begins with neither smtp:// nor smtps://")
	}
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			return nil, errors.New("SMTP_URL: the port is not 1 to 65535")
		}
	}
	query := u.Query()
	for name, values := range query {
		switch value := values[0]; name {
		case "from":
		case "tls":
			policies := map[string]gomail.TLSPolicy{"mandatory": gomail.TLSMandatory, "opportunistic": gomail.TLSOpportunistic, "none": gomail.NoTLS}
			chosen, known := policies[value]
			if !known || s.implicit != nil {
				return nil, errors.New("SMTP_URL: tls is mandatory, opportunistic or none, and only with smtp://")
			}
			policy = chosen
		case "timeout":
			if s.timeout, err = time.ParseDuration(value); err != nil || s.timeout <= 0 {
				return nil, errors.New("SMTP_URL: timeout is a duration such as 10s")
			}
		default:
			return nil, fmt.Errorf("SMTP_URL: unknown parameter %q", name)
		}
	}
	if s.from, err = ParseSender(query.Get("from")); err != nil {
		return nil, fmt.Errorf("SMTP_URL: from: %w", err)
	}
	s.options = []gomail.Option{
		gomail.WithPort(port), gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(security),
		gomail.WithTimeout(2 * s.timeout), // the library's bound for each step; Send's context ends before it
	}
	if u.User != nil {
		password, _ := u.User.Password()
		if password == "" {
			return nil, errors.New("SMTP_URL: the user has no password")
		}
		s.options = append(s.options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	}
	return s, nil
}

// Send passes the message to the server. Nil means that the server accepted it, not that it was delivered. Send fails with [Permanent] if
// the message is malformed or the server refuses it with 5xx. Every other error may be temporary: no connection, no response in time, 4xx,
// or a 5xx about our login, which the operator repairs. After such an error the server may still have the message.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close() // the library leaves it open if greeting, STARTTLS or AUTH fails (client.go, DialToSMTPClientWithContext)
		}
	}()
	client, err := gomail.NewClient(s.host, slices.Concat(s.options, []gomail.Option{
		gomail.WithDialContextFunc(func(dialing context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(dialing, network, address)
			if err != nil {
				return nil, err
			}
			conn = c
			// The library heeds a context only while it dials.
			context.AfterFunc(ctx, func() { _ = c.Close() })
			if s.implicit == nil {
				return c, nil
			}
			secured := tls.Client(c, s.implicit)
			return secured, secured.HandshakeContext(dialing)
		}),
	})...)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	msg := m.compose(s.from, s.now(), gomail.EncodingQP)
	err = client.DialAndSendWithContext(ctx, msg)
	if err == nil || msg.IsDelivered() { // a failed RSET or QUIT must not send it twice
		return nil
	}
	return s.failure(ctx, err)
}

// failure returns the error without the texts of library and server, which name the recipient.
func (s *SMTP) failure(ctx context.Context, err error) error {
	late := ctx.Err()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() { // a dialer sees the deadline a moment before the context does
		late = context.DeadlineExceeded
	}
	if late != nil {
		return fmt.Errorf("mail server %s did not reply in time: %w", s.host, late)
	}
	refusal, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	code := refusal.ErrorCode()
	if code == 0 {
		return fmt.Errorf("mail server %s: connection lost (%s)", s.host, refusal.Reason)
	}
	answer := fmt.Errorf("mail server %s responded %d %s (%s)", s.host, code, refusal.EnhancedStatusCode(), refusal.Reason)
	if code < 500 || code == 530 { // 530 asks for AUTH (RFC 4954, section 6) or STARTTLS (RFC 3207, section 4)
		return answer
	}
	return &Permanent{Reason: answer}
}
