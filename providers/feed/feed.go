// Package feed has the common parts of the adapters of brokers: addresses, TLS, and the error of a message that a broker
// refuses permanently. The adapters are Watermill publishers; the metadata of their messages are CloudEvents attributes.
//
// Watermill's own publishers for NATS (watermill-nats 2.1.3) and Kafka (watermill-kafka 3.0.6) would not do: both wait for an
// acknowledgement before they send the next message, which limits a feed to one message per round trip. To a NATS server in the same
// process, that halves the rate.
package feed

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Refused is the error of a message that the broker refuses permanently. The broker has the messages before it, and none
// of the same subject after it.
type Refused struct {
	ID  string // the message's UUID
	Err error
}

func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refused) Unwrap() error { return r.Err }

// Address is the address of a broker, with credentials and options.
type Address struct {
	Scheme  string
	Hosts   []string // host or host:port
	User    *url.Userinfo
	Options url.Values
	TLS     *tls.Config // with the authorities of the option ca, or the system's without it
}

var errAddress = errors.New("expected an address like scheme://user:password@host:port,host:port?option=value")

// ParseAddress parses an address, which may name several hosts. It refuses options that are not listed. The option ca is a file with the
// authorities of the broker's certificate, in PEM.
func ParseAddress(text string, options ...string) (Address, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	rest, query, _ := strings.Cut(rest, "?")
	at := strings.LastIndex(rest, "@") + 1
	hosts := strings.Split(strings.TrimSuffix(rest[at:], "/"), ",")
	a := Address{Scheme: scheme, Hosts: hosts, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	for _, host := range hosts { // an error may have a password in its text
		u, err := url.Parse(scheme + "://" + rest[:at] + host)
		if err != nil || u.Hostname() == "" || u.Path != "" || u.Fragment != "" {
			return a, errAddress
		}
		a.User = u.User
	}
	var err error
	if a.Options, err = url.ParseQuery(query); err != nil {
		return a, errAddress
	}
	for name := range a.Options {
		if !slices.Contains(options, name) {
			return a, fmt.Errorf("unknown option %q; known are %s", name, strings.Join(options, ", "))
		}
	}
	if file := a.Options.Get("ca"); file != "" {
		certificates, err := os.ReadFile(file) //nolint:gosec // the operator names it
		if err != nil {
			return a, fmt.Errorf("read the authorities' certificates: %w", err)
		}
		a.TLS.RootCAs = x509.NewCertPool()
		if !a.TLS.RootCAs.AppendCertsFromPEM(certificates) {
			return a, fmt.Errorf("%s has no certificates in PEM", file)
		}
	}
	return a, nil
}
