package company

import (
	"net"
	"strings"

	"golang.org/x/net/idna"

	"bahi/domain/fault"
)

// Domain returns the host of a domain, a web address or an email address in the form for claims and comparisons: in punycode, without www.,
// port and path (CONTRACT.md G20).
func Domain(field, text string) (string, error) {
	host := strings.TrimSpace(text)
	if _, rest, found := strings.Cut(host, "://"); found {
		host = rest
	}
	if end := strings.IndexAny(host, `/\?#`); end >= 0 {
		host = host[:end]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	for strings.HasPrefix(host, "www.") && strings.Count(host, ".") > 1 {
		host = strings.TrimPrefix(host, "www.")
	}
	if err != nil || len(host) > maxDomain || !strings.Contains(host, ".") || net.ParseIP(host) != nil || strings.Contains(host, "..") ||
		host[0] == '.' {
		return "", fault.Wrong(field, "expected a domain, as in example.org")
	}
	return host, nil
}

const maxDomain = 253 // RFC 1035, section 2.3.4

// OfMailProvider reports whether the domain belongs to a public mail provider. Such a domain does not identify a company.
func OfMailProvider(domain string) bool { return mailProviders[domain] }

var mailProviders = func() map[string]bool {
	all := map[string]bool{}
	for domain := range strings.FieldsSeq(`
		gmail.com googlemail.com yahoo.com yahoo.in yahoo.co.in yahoo.co.uk ymail.com rocketmail.com rediffmail.com rediff.com
		outlook.com outlook.in hotmail.com hotmail.co.uk live.com live.in msn.com icloud.com me.com mac.com aol.com
		proton.me protonmail.com pm.me zoho.com zohomail.com zohomail.in mail.com email.com gmx.com gmx.net gmx.de web.de
		yandex.com yandex.ru mail.ru qq.com 163.com 126.com fastmail.com hey.com tutanota.com tuta.io indiatimes.com sify.com in.com`) {
		all[domain] = true
	}
	return all
}()
