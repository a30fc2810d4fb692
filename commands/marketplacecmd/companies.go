// Package marketplacecmd has those marketplace commands that require more than load, decide, append.
package marketplacecmd

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd/credentials"
	"bahi/commands/unique"
	"bahi/domain/access/user"
	"bahi/domain/claims"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/marketplace/company"
	"bahi/domain/patch"
)

// domains claims each domain for one company.
var domains = unique.Field[company.State]{
	Records: company.Kind, Claims: company.Domains, Key: func(s company.State) string { return s.DomainKey },
	Name: "domain", Taken: company.DomainTaken, Global: true,
}

// domainKey returns the name of a domain's claim, or "" for a domain that cannot be claimed. The command refuses invalid domains.
func domainKey(ctx context.Context, h *commands.Handler, text string) (string, error) {
	host, err := company.Domain("domain", text)
	if err != nil || company.OfMailProvider(host) {
		return "", nil //nolint:nilerr // the command refuses it
	}
	return unique.Key(ctx, h, company.Domains, []byte(host))
}

// nameEmail adds the keyed hash of an address. It adds none for an invalid address, which the command refuses.
func nameEmail(ctx context.Context, h *commands.Handler, a *company.Own) (err error) {
	if text, wrong := company.Email(a.Email.Value); wrong == nil && text != "" {
		a.EmailKey, err = EmailKey(ctx, h, text)
	}
	return err
}

// EmailKey returns the keyed hash of a company's address.
func EmailKey(ctx context.Context, h *commands.Handler, address string) (string, error) {
	return h.Hash(ctx, "companyemail", []byte(address))
}

// EmailToken returns the subject of tokens mailed to a company's address.
func EmailToken(id uuid.UUID, key string) uuid.UUID { return uuid.NewSHA1(id, []byte(key)) }

// ConfirmEmail confirms the address of a company with its mailed token. The token has the company's id as its prefix.
func ConfirmEmail(ctx context.Context, h *commands.Handler, req commands.Request, mailed *credentials.Mailed,
	token string) (out commands.Outcome[company.State], err error) {
	name, secret, _ := strings.Cut(token, ".")
	id, err := uuid.Parse(name)
	if err != nil {
		return out, credentials.CompanyEmail.Refusal()
	}
	return out, mailed.Use(ctx, credentials.CompanyEmail, secret, func(ctx context.Context, of uuid.UUID) error {
		l, err := commands.Load(ctx, h.Fresh(), company.Kind, id.String())
		if err != nil {
			return err
		}
		if l.State.EmailKey == "" || of != EmailToken(id, l.State.EmailKey) {
			return credentials.CompanyEmail.Refusal()
		}
		out, err = commands.Handle(ctx, h, req.In(l.Workspace).FollowUp(), company.Kind, id.String(), company.ConfirmEmail{Key: l.State.EmailKey})
		return err
	})
}

// newID returns the id of a new record. Ids increase with time.
func newID(context.Context) (string, error) { return uuid.Must(uuid.NewV7()).String(), nil }

// CreateCompany creates a company in the request's workspace. Without a domain in the request, the company gets the domain of its creator's
// mail address if the address is verified and the domain is free.
func CreateCompany(ctx context.Context, h *commands.Handler, req commands.Request, c company.Create) (commands.Outcome[company.State],
	error) {
	if out, done, err := commands.PreviousOutcome(ctx, h, req, company.Kind); done || err != nil {
		return out, err
	}
	none := commands.Outcome[company.State]{Revision: -1}
	if err := nameEmail(ctx, h, &c.Own); err != nil {
		return none, err
	}
	if _, err := c.Decide(company.State{}); err != nil {
		return none, err
	}
	if req.IfMatch != nil { // before a slug is claimed
		return none, commands.ErrStale
	}
	guessed := !c.Domain.Present()
	if guessed {
		domain, err := mailDomain(ctx, h, req)
		if err != nil {
			return none, err
		}
		c.Domain = patch.Set(domain)
	}
	var err error
	if c.DomainKey, err = domainKey(ctx, h, c.Domain.Value); err != nil {
		return none, err
	}
	if guessed && c.DomainKey == "" {
		c.Domain = patch.Field[string]{}
	}
	out, err := createCompany(ctx, h, req, c)
	if taken, ok := errors.AsType[*fault.Error](err); ok && guessed && taken.Detail == company.DomainTaken {
		c.Domain, c.DomainKey = patch.Field[string]{}, ""
		return createCompany(ctx, h, req, c)
	}
	return out, err
}

func createCompany(ctx context.Context, h *commands.Handler, req commands.Request, c company.Create) (commands.Outcome[company.State],
	error) {
	return commands.Do(ctx, h, req, company.Kind, func(ctx context.Context, tx *commands.Tx) error {
		if err := domains.Free(ctx, tx, c.DomainKey, ""); err != nil {
			return err
		}
		var key string
		named := c
		if !tx.DryRun() {
			id, err := commands.Once(tx, company.Kind.Category(), func() (string, error) { return newID(ctx) })
			if err != nil {
				return err
			}
			named.ID = id
			if named.Slug, key, err = freeSlug(ctx, h, tx, company.Slug(c.Name, id)); err != nil {
				return err
			}
		}
		_, err := commands.DecideNew(ctx, tx, company.Kind, newID, func(id string) event.Command[company.State] {
			if id == "" { // only checked, not written
				return c
			}
			return named
		})
		if err != nil || tx.DryRun() {
			return err
		}
		if err := domains.Give(ctx, tx, c.DomainKey, named.ID); err != nil {
			return err
		}
		claim := claims.Claim{Value: company.Slugs, Holder: named.ID, Now: tx.Now()}
		_, err = commands.Decide(ctx, tx.In(uuid.Nil), company.Slugs.Kind, key, claim)
		return err
	})
}

// mailDomain returns the domain of the caller's verified mail address, or "".
func mailDomain(ctx context.Context, h *commands.Handler, req commands.Request) (string, error) {
	if req.Actor.Type != "user" {
		return "", nil
	}
	l, err := commands.Load(ctx, h.Fresh(), user.Kind, req.Actor.ID)
	if err != nil || !l.State.Verified {
		return "", err
	}
	email, err := commands.Reveal(ctx, h, l.State.Email)
	if err != nil || email.Shown() == nil {
		return "", err
	}
	_, domain, _ := strings.Cut(*email.Shown(), "@")
	return domain, nil
}

// freeSlug returns the first free one of the company's preferred slugs, and the name of its claim.
func freeSlug(ctx context.Context, h *commands.Handler, tx *commands.Tx, wanted string) (slug, key string, err error) {
	n, err := firstFree(func(n int) (bool, error) {
		key, err := slugKey(ctx, h, company.Nth(wanted, n))
		if err != nil {
			return false, err
		}
		held, err := commands.Load(ctx, tx.In(uuid.Nil), company.Slugs.Kind, key)
		return held.State.Holder != "", err
	})
	if err != nil {
		return "", "", err
	}
	slug = company.Nth(wanted, n)
	key, err = slugKey(ctx, h, slug)
	return slug, key, err
}

func slugKey(ctx context.Context, h *commands.Handler, slug string) (string, error) {
	return unique.Key(ctx, h, company.Slugs, []byte(slug))
}

// firstFree returns 1 if that is free, or a free number whose predecessor is taken. It does not check all numbers.
func firstFree(taken func(int) (bool, error)) (int, error) {
	last, free := 0, 1
	for {
		is, err := taken(free)
		if err != nil {
			return 0, err
		}
		if !is {
			break
		}
		last, free = free, free*2
	}
	for free-last > 1 {
		middle := (last + free) / 2
		is, err := taken(middle)
		if err != nil {
			return 0, err
		}
		if is {
			last = middle
		} else {
			free = middle
		}
	}
	return free, nil
}

// EditCompany changes the fields of a company that the command has.
func EditCompany(ctx context.Context, h *commands.Handler, req commands.Request, id string,
	c company.Edit) (commands.Outcome[company.State], error) {
	req, err := enterCompany(ctx, h, req, id)
	if err != nil {
		return commands.Outcome[company.State]{Revision: -1}, err
	}
	c.ByOperator, c.ID = req.Actor.Permissions.Operator, id
	if err := nameEmail(ctx, h, &c.Own); err != nil {
		return commands.Outcome[company.State]{Revision: -1}, err
	}
	var key *string // nil: unchanged
	if c.Domain.Present() {
		if c.DomainKey, err = domainKey(ctx, h, c.Domain.Value); err != nil {
			return commands.Outcome[company.State]{Revision: -1}, err
		}
		key = &c.DomainKey
	}
	return domains.Handle(ctx, h, req, id, key, c)
}

// DeleteCompany deletes a company. It releases its domain, but not its slug.
func DeleteCompany(ctx context.Context, h *commands.Handler, req commands.Request, id string) (commands.Outcome[company.State], error) {
	req, err := enterCompany(ctx, h, req, id)
	if err != nil {
		return commands.Outcome[company.State]{Revision: -1}, err
	}
	return domains.Handle(ctx, h, req, id, new(""), company.Delete{})
}

func enterCompany(ctx context.Context, h *commands.Handler, req commands.Request, id string) (commands.Request, error) {
	return enter(ctx, h, req, company.Kind, id, func(s company.State) error {
		if s.Name == "" {
			return nil // the command reports that it is missing
		}
		return company.ErrNotYours
	})
}

// enter returns the request for a change of a publicly readable record. An operator acts in the record's workspace. It returns the error
// foreign if another caller's workspace differs from the record's.
func enter[S any](
	ctx context.Context, h *commands.Handler, req commands.Request, kind *event.Kind[S], id string, foreign func(S) error,
) (commands.Request, error) {
	l, err := commands.Load(ctx, h.Fresh(), kind, id)
	switch {
	case err != nil || l.Revision < 0 || l.Workspace == req.Workspace:
		return req, err
	case req.Actor.Permissions.Operator:
		return req.In(l.Workspace), nil
	}
	return req, foreign(l.State)
}
