package esdbserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	caLife     = 10 * 365 * 24 * time.Hour
	serverLife = 90 * 24 * time.Hour

	// renewBefore is the time before its expiry at which a server's certificate is replaced.
	renewBefore = 30 * 24 * time.Hour

	// skew is the maximum lag of clients' clocks.
	skew = time.Hour
)

// OwnCA is a certificate authority for one server. Its folder has only ca.crt, for clients, and ca.key. It issues the server's certificate
// at each start, and again before that one expires.
type OwnCA struct {
	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
	hosts []string
	now   func() time.Time

	mu      sync.Mutex
	serving *tls.Certificate
}

// OpenCA opens the authority in the folder, or creates it. hosts are the names and addresses by which clients may call the server.
func OpenCA(dir string, hosts []string, now func() time.Time) (*OwnCA, error) {
	c := &OwnCA{hosts: hosts, now: now}
	err := c.load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.make(dir); err == nil {
			err = c.load(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the gateway's certificate authority in %s: %w", dir, err)
	}
	return c, nil
}

// TLS returns the server's configuration.
func (c *OwnCA) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.certificate() }}
}

func (c *OwnCA) load(dir string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return errors.New("it is not an ECDSA certificate authority")
	}
	if c.now().After(pair.Leaf.NotAfter) {
		return fmt.Errorf("expired on %s; move its folder away, restart, and give clients the new ca.crt",
			pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	c.ca, c.key = pair.Leaf, key
	return nil
}

// make writes the key first: an authority without a certificate is incomplete and is created again.
func (c *OwnCA) make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := c.template("Bahi gateway CA", caLife)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "ca.key"), "PRIVATE KEY", secret); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", der)
}

func writePEM(path, kind string, der []byte) error {
	whole := path + ".new"
	if err := os.WriteFile(whole, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.Rename(whole, path)
}

func (c *OwnCA) template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: c.now().Add(-skew), NotAfter: c.now().Add(life),
	}, nil
}

// certificate returns the server's certificate. It creates a new one shortly before the last expires.
func (c *OwnCA) certificate() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving != nil && c.now().Before(c.serving.Leaf.NotAfter.Add(-renewBefore)) {
		return c.serving, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := c.template("Bahi gateway", serverLife)
	if err != nil {
		return nil, err
	}
	if template.NotAfter.After(c.ca.NotAfter) {
		template.NotAfter = c.ca.NotAfter
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range c.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, key.Public(), c.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c.serving = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	return c.serving, nil
}
