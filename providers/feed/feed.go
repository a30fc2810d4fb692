// Package feed has what the adapters of brokers share: how a broker is named, and what they say of a message that it
// will never take. The adapters are Watermill publishers whose messages' metadata are CloudEvents attributes.
//
// Watermill's own for NATS (watermill-nats 2.1.3) and Kafka (watermill-kafka 3.0.6) were turned down: both wait for
// the broker's answer to each message before they send the next, so a feed through them is as fast as a round trip.
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

// Refused tells of a message that the broker will never take as it is. It has those before it, and of those behind it
// none of the same subject.
type Refused struct {
	ID  string // the message's UUID
	Err error
}

func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap answers the cause.
func (r *Refused) Unwrap() error { return r.Err }

// Address says where a broker is, and how to get in.
type Address struct {
	Scheme  string
	Hosts   []string // host or host:port
	User    *url.Userinfo
	Options url.Values
}

var errAddress = errors.New("expected an address like scheme://user:password@host:port,host:port?option=value")

// ParseAddress reads an address, which may name several hosts. It refuses options other than these.
func ParseAddress(text string, options ...string) (Address, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	rest, query, _ := strings.Cut(rest, "?")
	at := strings.LastIndex(rest, "@") + 1
	hosts := strings.Split(strings.TrimSuffix(rest[at:], "/"), ",")
	a := Address{Scheme: scheme, Hosts: hosts}
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
			return a, fmt.Errorf("there is no option %q, only %s", name, strings.Join(options, ", "))
		}
	}
	return a, nil
}

// Roots are the authorities whose word is taken: those of a file in PEM, or the system's when it has no name.
func Roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // which is how crypto/tls says: the system's
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("read the authorities' certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificates in PEM", file)
	}
	return roots, nil
}

// TLS is how to speak to a broker whose certificate is by these authorities.
func TLS(roots *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}
