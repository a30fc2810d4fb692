package mail_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"bahi/providers/mail"
)

const from = "?from=%E0%A4%AC%E0%A4%B9%E0%A5%80+<bahi@workshop.example>"

// server is a real mail server on a free port.
type server struct {
	addr      string
	rcpt      error // its reply to a recipient, if it is an error
	data      error // its reply to the content
	login     bool  // asks for asha and p@ss:w/rd
	delivered chan delivery
}

type delivery struct {
	from, to, user string
	tls            bool
	raw            []byte
}

// serve starts s, on TLS from the first byte if implicit, else offering STARTTLS if there is a certificate.
func serve(t *testing.T, s *server, certificate *tls.Certificate, implicit bool) *server {
	t.Helper()
	s.delivered = make(chan delivery, 16)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = listener.Addr().String()
	config := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: s, conn: c}, nil }))
	config.Domain = "mail.example"
	config.ReadTimeout, config.WriteTimeout = 10*time.Second, 10*time.Second
	if certificate != nil {
		config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		config.ErrorLog = discard{} // a client that does not trust the certificate reports that
	}
	if implicit {
		listener = tls.NewListener(listener, config.TLSConfig)
	}
	done := make(chan error, 1)
	go func() { done <- config.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, config.Close())
		<-done
	})
	return s
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

type session struct {
	*server

	conn *smtp.Conn
	got  delivery
}

func (s *session) AuthMechanisms() []string {
	if !s.login {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "asha" || password != "p@ss:w/rd" {
			return smtp.ErrAuthFailed
		}
		s.got.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.login && s.got.user == "" {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	s.got.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.got.to = to
	return s.rcpt
}

func (s *session) Data(r io.Reader) (err error) {
	if s.got.raw, err = io.ReadAll(r); err != nil {
		return err
	}
	if s.data != nil {
		return s.data
	}
	_, s.got.tls = s.conn.TLSConnectionState()
	s.delivered <- s.got
	return nil
}

func (s *session) Reset()        { s.got = delivery{user: s.got.user} }
func (s *session) Logout() error { return nil }

// authority makes a CA and a certificate for 127.0.0.1.
func authority(t *testing.T) (*x509.CertPool, *tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	root, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return roots, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func connect(t *testing.T, url string, roots *x509.CertPool) *mail.SMTP {
	t.Helper()
	s, err := mail.NewSMTP(url, roots, clock)
	require.NoError(t, err)
	return s
}

func TestSMTPDeliversMail(t *testing.T) {
	t.Parallel()
	s := serve(t, &server{}, nil, false)
	sends(t, connect(t, "smtp://"+s.addr+from+"&tls=none", nil).Send, func() []byte {
		got := <-s.delivered
		require.Equal(t, "bahi@workshop.example", got.from)
		require.Equal(t, asha.Address, got.to)
		return got.raw
	})
	require.Empty(t, s.delivered, "a refused mail was delivered")
}

func TestSMTPUsesTLSAndLogsIn(t *testing.T) {
	t.Parallel()
	roots, certificate := authority(t)
	starttls, implicit := serve(t, &server{login: true}, certificate, false), serve(t, &server{login: true}, certificate, true)
	for url, s := range map[string]*server{
		"smtp://asha:p%40ss%3Aw%2Frd@" + starttls.addr + from:                        starttls,
		"smtp://asha:p%40ss%3Aw%2Frd@" + starttls.addr + from + "&tls=mandatory":     starttls,
		"smtp://asha:p%40ss%3Aw%2Frd@" + starttls.addr + from + "&tls=opportunistic": starttls,
		"smtps://asha:p%40ss%3Aw%2Frd@" + implicit.addr + from:                       implicit,
	} {
		require.NoError(t, connect(t, url, roots).Send(t.Context(), verification()), url)
		got := <-s.delivered
		require.Equal(t, "asha", got.user)
		require.True(t, got.tls)
	}
	for _, url := range []string{"smtp://" + starttls.addr + from, "smtps://" + implicit.addr + from} {
		err := connect(t, url, nil).Send(t.Context(), verification())
		unknown := x509.UnknownAuthorityError{}
		require.ErrorAs(t, err, &unknown, "an untrusted server")
	}
	require.Empty(t, starttls.delivered)
	require.Empty(t, implicit.delivered)
}

func TestSMTPWithoutTLSMustBeConfigured(t *testing.T) {
	t.Parallel()
	s := serve(t, &server{}, nil, false)
	err := connect(t, "smtp://"+s.addr+from, nil).Send(t.Context(), verification())
	require.ErrorContains(t, err, "does not support STARTTLS")
	require.Empty(t, s.delivered)
	require.NoError(t, connect(t, "smtp://"+s.addr+from+"&tls=opportunistic", nil).Send(t.Context(), verification()))
	require.False(t, (<-s.delivered).tls)
}

func TestSMTPDoesNotRevealItsPassword(t *testing.T) {
	t.Parallel()
	roots, certificate := authority(t)
	s := serve(t, &server{login: true}, certificate, false)
	for _, url := range []string{"smtp://asha:wr0ng@" + s.addr + from, "smtp://asha:wr0ng@" + s.addr + from + "&tls=none"} {
		sender := connect(t, url, roots)
		err := sender.Send(t.Context(), verification())
		require.ErrorContains(t, err, "mail server 127.0.0.1: ")
		require.NotContains(t, err.Error(), "wr0ng")
		require.NotContains(t, fmt.Sprintf("%+v", sender), "wr0ng")
		var refused *mail.Permanent
		require.NotErrorAs(t, err, &refused, "the operator can repair it")
	}

	// A server that asks for the password in clear does not get it.
	lines := script(t, "220 hello\r\n", "250-hello\r\n250 AUTH PLAIN LOGIN\r\n")
	err := connect(t, "smtp://asha:wr0ng@"+lines.addr+from+"&tls=opportunistic", roots).Send(t.Context(), verification())
	require.ErrorContains(t, err, "mail server 127.0.0.1: ")
	for _, line := range lines.heard() {
		require.NotContains(t, line, "AUTH")
	}
}

func TestSMTPDistinguishesPermanentRefusals(t *testing.T) {
	t.Parallel()
	unknown := &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "asha@mill.example: no such user"}
	busy := &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "asha@mill.example: try later"}
	for text, c := range map[string]struct {
		server    server
		permanent bool
	}{
		"mail server 127.0.0.1 responded 550 5.1.1 (sending SMTP RCPT TO command)":   {server{rcpt: unknown}, true},
		"mail server 127.0.0.1 responded 451 4.3.0 (sending SMTP RCPT TO command)":   {server{rcpt: busy}, false},
		"mail server 127.0.0.1 responded 550 5.1.1 (closing SMTP DATA writer)":       {server{data: unknown}, true},
		"mail server 127.0.0.1 responded 451 4.3.0 (closing SMTP DATA writer)":       {server{data: busy}, false},
		"mail server 127.0.0.1 responded 530 5.7.0 (sending SMTP MAIL FROM command)": {server{login: true}, false},
	} {
		s := serve(t, &c.server, nil, false)
		err := connect(t, "smtp://"+s.addr+from+"&tls=none", nil).Send(t.Context(), verification())
		require.EqualError(t, err, text, "the error must not contain an address")
		var refused *mail.Permanent
		require.Equal(t, c.permanent, errors.As(err, &refused), text)
		require.Empty(t, s.delivered)
	}
}

func TestSMTPTimesOut(t *testing.T) {
	t.Parallel()
	for what, answers := range map[string][]string{
		"no greeting":         nil,
		"no answer to EHLO":   {"220 hello\r\n"},
		"none to MAIL":        {"220 hello\r\n", "250 hello\r\n", "250 noop\r\n"},
		"none to the content": {"220 hello\r\n", "250 hello\r\n", "250 noop\r\n", "250 sender\r\n", "250 recipient\r\n", "354 go on\r\n"},
	} {
		lines := script(t, answers...)
		sender := connect(t, "smtp://"+lines.addr+from+"&tls=none&timeout=100ms", nil)
		err := sender.Send(t.Context(), verification())
		require.ErrorIs(t, err, context.DeadlineExceeded, what)
		require.EqualError(t, err, "mail server 127.0.0.1 did not reply in time: context deadline exceeded", what)

		lines = script(t, answers...)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-lines.called
			time.AfterFunc(50*time.Millisecond, cancel)
		}()
		err = connect(t, "smtp://"+lines.addr+from+"&tls=none", nil).Send(ctx, verification())
		require.ErrorIs(t, err, context.Canceled, what)
		lines.heard() // the connection is closed
	}
	lines := script(t)
	err := connect(t, "smtps://"+lines.addr+from+"&timeout=100ms", nil).Send(t.Context(), verification())
	require.ErrorIs(t, err, context.DeadlineExceeded, "no TLS handshake")
}

func TestSMTPReportsAnOutage(t *testing.T) {
	t.Parallel()
	err := connect(t, "smtp://127.0.0.1:1"+from, nil).Send(t.Context(), verification())
	require.ErrorContains(t, err, "connection refused")
	var refused *mail.Permanent
	require.NotErrorAs(t, err, &refused)

	hangup := script(t, "220 hello\r\n", "250 hello\r\n", "250 noop\r\n", "")
	err = connect(t, "smtp://"+hangup.addr+from+"&tls=none", nil).Send(t.Context(), verification())
	require.EqualError(t, err, "mail server 127.0.0.1: connection lost (sending SMTP MAIL FROM command)")
}

func TestSMTPCountsAnAcceptedMailAsSent(t *testing.T) {
	t.Parallel()
	lines := script(t, "220 hello\r\n", "250 hello\r\n", "250 noop\r\n", "250 sender\r\n", "250 recipient\r\n", "354 go on\r\n",
		"250 taken\r\n", "")
	require.NoError(t, connect(t, "smtp://"+lines.addr+from+"&tls=none", nil).Send(t.Context(), verification()))
}

func TestInvalidSMTPURLIsNotQuoted(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"smtp://asha:s3cret@host:port?from=a@b.example": "SMTP_URL is invalid; expected " +
			"smtp://user:password@host:port?from=address",
		"smtp://asha:s3cret@host%zz?from=a@b.example": "SMTP_URL is invalid; expected " +
			"smtp://user:password@host:port?from=address",
		"http://asha:s3cret@host?from=a@b.example":               "SMTP_URL begins with neither smtp:// nor smtps://",
		"smtp://asha:s3cret@:25?from=a@b.example":                "SMTP_URL names no host",
		"smtp://asha:s3cret@host:70000?from=a@b.example":         "SMTP_URL: the port is not 1 to 65535",
		"smtp://asha:s3cret@host?from=a@b.example&tls=yes":       "SMTP_URL: tls is mandatory, opportunistic or none, and only with smtp://",
		"smtps://asha:s3cret@host?from=a@b.example&tls=none":     "SMTP_URL: tls is mandatory, opportunistic or none, and only with smtp://",
		"smtp://asha:s3cret@host?from=a@b.example&timeout=10":    "SMTP_URL: timeout is a duration such as 10s",
		"smtp://asha:s3cret@host?from=a@b.example&insecure=true": `SMTP_URL: unknown parameter "insecure"`,
		"smtp://asha:s3cret@host": "SMTP_URL: from: the sender is missing: expected an address such as " +
			"bahi@example.org",
		"smtp://asha:s3cret@host?from=%22a%20b%22@b.example":         `SMTP_URL: from: sender "\"a b\"@b.example": not an address`,
		"smtp://asha:s3cret@host?from=Bahi%0D%0AX:y<bahi@b.example>": "",
	} {
		_, err := mail.NewSMTP(url, nil, clock)
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "s3cret")
		if want != "" {
			require.EqualError(t, err, want, url)
		}
	}
}

// transcript returns what a client sends to a server that follows a script and then stops responding.
type transcript struct {
	addr   string
	heard  func() []string // waits until the client hangs up
	called <-chan struct{} // closed when a client has connected
}

// script responds to each line of the client, and to the content as one line, with the next text. It closes the connection at an empty
// text.
func script(t *testing.T, answers ...string) transcript {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	said, called := make(chan []string, 1), make(chan struct{})
	go func() {
		var lines []string
		defer func() { said <- lines }()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		close(called)
		client := bufio.NewReader(conn)
		for _, answer := range append(answers, "wait") {
			if answer == "" {
				return
			}
			if answer == "wait" {
				_, _ = io.Copy(io.Discard, client)
				return
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
			content := strings.HasPrefix(answer, "354")
			for {
				line, err := client.ReadString('\n')
				lines = append(lines, line)
				if err != nil {
					return
				}
				if !content || line == ".\r\n" {
					break
				}
			}
		}
	}()
	return transcript{listener.Addr().String(), func() []string { return <-said }, called}
}
