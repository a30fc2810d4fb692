package api

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bahi/commands"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/readmodels"
)

const (
	maxKey    = 255 // characters, by the contract
	maxReason = 500

	// patience is the maximum wait of a read for the position in a request. For a request without a position, the default of package
	// readmodels applies.
	patience = 5 * time.Second
)

// one returns the value of a header that may occur once.
func one(h http.Header, name string) (value string, present bool, err error) {
	values := h[name]
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", true, fault.Wrong(name, "must be given once")
	}
}

// conditions reads the headers that condition a write.
func (c *call) conditions() error {
	h := c.r.Header
	match, matched, err := one(h, "If-Match")
	if err != nil {
		return fault.New(fault.Malformed, "If-Match must be given once")
	}
	if matched {
		if c.request.IfMatch, err = parseMatch(match); err != nil {
			return err
		}
		if c.op.Operator && c.request.IfMatch != nil { // records of operators' actions have no revision
			return commands.ErrStale
		}
	}
	for _, read := range []func() error{c.key, c.dryRun, c.reason} {
		if err := c.noted(read()); err != nil {
			return err
		}
	}
	c.request.Operation = c.op.ID
	if c.request.Key != "" {
		c.print = newFingerprint(c.r, match, c.request.DryRun)
	}
	return nil
}

func (c *call) key() error {
	if c.op.NoKey {
		return nil
	}
	key, keyed, err := one(c.r.Header, "Idempotency-Key")
	if keyed && err == nil && (key == "" || !sane(key) || utf8.RuneCountInString(key) > maxKey) {
		err = fault.Wrong("Idempotency-Key", "1 to 255 characters")
	}
	c.request.Key = key
	return err
}

func (c *call) dryRun() error {
	value, present, err := one(c.r.Header, "Bahi-Dry-Run")
	switch {
	case err != nil || !present || value == "false":
		return err
	case value != "true":
		return fault.Wrong("Bahi-Dry-Run", "expected true or false")
	case !c.op.DryRun:
		return &fault.Error{
			Kind: fault.Invalid, Code: "dry_run_unsupported", Detail: "Validation error",
			Fields: []fault.Field{{Field: "Bahi-Dry-Run", Message: "this operation has no dry run"}},
		}
	}
	c.request.DryRun = true
	return nil
}

var errIfMatch = fault.New(fault.Malformed, `If-Match must be the ETag of one revision, such as "3", or *`)

// parseMatch parses If-Match (RFC 9110, 13.1.1). A valid tag in another form than Bahi's matches nothing. A weak tag matches nothing,
// because the comparison is strong.
func parseMatch(text string) (*int64, error) {
	if text == "*" {
		return nil, nil
	}
	tag, weak := strings.CutPrefix(text, "W/")
	if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' || strings.ContainsAny(tag[1:len(tag)-1], "\" \x7f") {
		return nil, errIfMatch
	}
	tag = tag[1 : len(tag)-1]
	revision, err := strconv.ParseInt(tag, 10, 64)
	if weak || err != nil || strconv.FormatInt(revision, 10) != tag || revision < 0 {
		return nil, commands.ErrStale
	}
	return &revision, nil
}

func (c *call) reason() error {
	value, present, err := one(c.r.Header, "Bahi-Reason")
	if !present || err != nil {
		return err
	}
	reason, err := url.PathUnescape(value)
	switch {
	case err != nil || !utf8.ValidString(reason):
		return fault.Wrong("Bahi-Reason", "expected percent-encoded UTF-8")
	case utf8.RuneCountInString(reason) > maxReason:
		return fault.Wrong("Bahi-Reason", "at most 500 characters")
	case strings.ContainsFunc(reason, unicode.IsControl):
		return fault.Wrong("Bahi-Reason", "control characters are not allowed")
	}
	c.request.Reason = strings.TrimSpace(reason)
	return nil
}

// preferences reads Prefer (RFC 7240). It ignores unknown preferences, as RFC 7240 requires.
func (c *call) preferences() error {
	returned := false
	for _, line := range c.r.Header["Prefer"] {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			name, value, _ := strings.Cut(name, "=")
			switch name = strings.ToLower(strings.TrimSpace(name)); {
			case name == "respond-async":
				c.later = true
			case name == "return" && !returned: // the first one counts
				returned = true
				c.prefers = strings.Trim(strings.TrimSpace(value), `"`) == "representation"
			}
		}
	}
	return nil
}

// freshness makes the reads of the request report their positions and obey Bahi-Min-Position.
func (c *call) freshness() error {
	c.fresh = &readmodels.At{}
	if c.op.write() {
		return nil // a successful write must not fail because a read lags
	}
	value, present, err := one(c.r.Header, "Bahi-Min-Position")
	if !present || err != nil {
		return err
	}
	position, err := strconv.ParseUint(value, 10, 64)
	if err != nil || value[0] == '+' {
		return fault.Wrong("Bahi-Min-Position", "expected a position in the log")
	}
	if position > 0 {
		c.fresh.Min, c.fresh.Wait = event.Position(position), patience
	}
	return nil
}

// fingerprint is a hash over all parts that identify a request. The length of each part precedes it, so different parts never give the same
// bytes.
type fingerprint struct{ hash.Hash }

func newFingerprint(r *http.Request, match string, dryRun bool) *fingerprint {
	f := &fingerprint{sha256.New()}
	dry := ""
	if dryRun {
		dry = "true"
	}
	for _, part := range []string{r.Method, r.URL.Path, r.URL.Query().Encode(), match, dry} {
		f.part([]byte(part))
	}
	return f
}

func (f *fingerprint) part(b []byte) {
	if f == nil {
		return
	}
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(b)))
	f.Write(length[:])
	f.Write(b)
}

func (f *fingerprint) sum() []byte {
	if f == nil {
		return nil
	}
	return f.Sum(nil)
}

// saneQuery reports whether a query can be decoded. Huma would treat undecodable parameters as absent, and return another result.
func saneQuery(raw string) bool {
	_, err := url.ParseQuery(raw)
	text, _ := url.QueryUnescape(raw) // fails if ParseQuery does
	return err == nil && sane(text)
}

// strictQuery refuses unknown and repeated parameters. Of repeated ones, huma would use the first.
func (c *call) strictQuery() error {
	raw := c.r.URL.RawQuery
	if raw == "" {
		return nil
	}
	var wrong []fault.Field
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(raw, "&") {
		escaped, value, _ := strings.Cut(pair, "=")
		name, _ := url.QueryUnescape(escaped)
		switch {
		case pair == "":
		case !c.op.query[name]:
			wrong = append(wrong, fault.Field{Field: shortened(name), Message: "unknown parameter"})
		case seen[name]:
			wrong = append(wrong, fault.Field{Field: name, Message: "must be given once"})
		case value == "": // huma would treat an empty value as absent
			wrong = append(wrong, fault.Field{Field: name, Message: "must not be empty"})
		}
		seen[name] = true
		if len(wrong) >= maxWrong {
			break
		}
	}
	return fault.Found(wrong)
}
