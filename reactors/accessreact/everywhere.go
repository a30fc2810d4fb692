package accessreact

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/ledgercmd"
	"bahi/commands/marketplacecmd"
	"bahi/commands/messagingcmd"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/event"
	"bahi/domain/fault"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/messaging/contact"
	"bahi/domain/person"
	"bahi/readmodels"
	"bahi/readmodels/ledgerview"
	"bahi/readmodels/marketplaceview"
	"bahi/readmodels/messagingview"
)

// PersonEraser erases a person from all areas of the deployment, for an operator (CONTRACT.md W1).
type PersonEraser struct {
	*Eraser

	Ledger      *ledgerview.Views
	Marketplace *marketplaceview.Views
	Messaging   *messagingview.Views
}

// found are the subjects with the address or the phone.
type found struct {
	users       []uuid.UUID
	invitations []uuid.UUID
	companies   []uuid.UUID // companies that receive enquiries at the address
	contacts    []messagingview.Owned
	sellers     []uuid.UUID // contacts of companies
	buyers      []string
	sender      bool
}

// EraseEverywhere erases all subjects that have an address or a phone, and returns their number. It finds accounts by address alone,
// because phones of accounts are not verified. When it returns, all keys are destroyed except the keys of accounts. A job erases accounts.
func (e *PersonEraser) EraseEverywhere(ctx context.Context, req commands.Request, email, phone string) (subjects int, err error) {
	var wrongEmail, wrongPhone error
	if strings.TrimSpace(email) != "" {
		email, wrongEmail = person.Email("email", email)
	}
	phone, wrongPhone = person.Phone("phone", phone)
	if err := fault.Join(wrongEmail, wrongPhone); err != nil {
		return 0, err
	}
	if strings.TrimSpace(email) == "" && phone == "" {
		return 0, fault.Wrong("email", "an email or a phone is required")
	}
	all, err := readmodels.Complete(func(at *readmodels.At) (found, error) { return e.find(ctx, at, email, phone) })
	if err != nil {
		return 0, err
	}
	req = req.FollowUp()
	var ended []string
	end := func(subject string, err error) error {
		if err == nil {
			ended = append(ended, subject)
		}
		return err
	}
	var failed []error
	for _, id := range all.users {
		failed = append(failed, e.endUser(ctx, id))
	}
	for _, id := range all.invitations {
		failed = append(failed, end(workspace.InvitationSubject(id), nil))
	}
	for _, id := range all.companies {
		failed = append(failed, e.endCompanyEmail(ctx, req, id, end))
	}
	for _, c := range all.contacts {
		id := strconv.FormatInt(c.ID, 10)
		_, err := messagingcmd.DeleteContact(ctx, e.Commands, req.In(c.Workspace), id)
		failed = append(failed, end(contact.Subjects.Of(id), unless(err, contact.ErrNotFound)))
	}
	for _, id := range all.sellers {
		_, err := marketplacecmd.DeleteContact(ctx, e.Commands, req, id.String())
		failed = append(failed, end(companycontact.Subjects.Of(id.String()), unless(err, companycontact.ErrNotFound)))
	}
	for _, buyer := range all.buyers {
		failed = append(failed, end(enquiry.Buyers.Of(buyer), e.endBuyer(ctx, req, buyer)))
	}
	if all.sender {
		out, err := ledgercmd.EraseSender(ctx, req.In(uuid.Nil), e.Commands, phone[1:])
		failed = append(failed, end(orderdraft.Senders.Of(out.ID), err))
	}
	for _, subject := range ended {
		failed = append(failed, e.forget(ctx, subject))
	}
	if len(ended) > 0 {
		failed = append(failed, e.Jobs.Add(ctx, scrubTables{Subject: ended[len(ended)-1], Immediate: true}))
	}
	return len(ended) + len(all.users), errors.Join(failed...)
}

// unless returns nil for an error that means that the work is already done.
func unless(err, done error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}

func (e *PersonEraser) find(ctx context.Context, at *readmodels.At, email, phone string) (all found, err error) {
	if email != "" {
		key, err := e.Accounts.EmailKey(ctx, email)
		if err != nil {
			return all, err
		}
		id, s, err := e.Accounts.HolderOf(ctx, key)
		if err != nil {
			return all, err
		}
		if id != uuid.Nil && s.Registered {
			all.users = append(all.users, id)
		}
		if all.invitations, err = e.Views.InvitationsTo(ctx, at, []string{key}); err != nil {
			return all, err
		}
		if key, err = marketplacecmd.EmailKey(ctx, e.Commands, email); err != nil {
			return all, err
		}
		if all.companies, err = e.Marketplace.CompaniesMailed(ctx, at, key); err != nil {
			return all, err
		}
	}
	if phone != "" {
		sender, err := ledgercmd.SenderID(ctx, e.Commands, phone[1:])
		if err != nil {
			return all, err
		}
		if all.sender, err = e.Ledger.HasSender(ctx, at, sender); err != nil {
			return all, err
		}
	}
	if all.contacts, err = e.Messaging.ContactsReached(ctx, at, email, strings.TrimPrefix(phone, "+")); err != nil {
		return all, err
	}
	if all.sellers, err = e.Marketplace.ContactsReached(ctx, at, email, phone); err != nil {
		return all, err
	}
	all.buyers, err = e.Marketplace.Buyers(ctx, at, email, phone)
	return all, err
}

// endUser makes the erasure of an account due now. A job erases it.
func (e *PersonEraser) endUser(ctx context.Context, id uuid.UUID) error {
	s, err := e.Accounts.Load(ctx, id)
	if errors.Is(err, user.ErrNotFound) { // it is being erased
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range []event.Command[user.State]{user.CancelDeletion{}, user.RequestDeletion{DeleteAfter: e.Now()}} {
		if _, err := commands.Handle(ctx, e.Commands, acting(s.Workspace), user.Kind, id.String(), c); err != nil {
			return fmt.Errorf("request the erasure of an account: %w", err)
		}
	}
	return nil
}

// endCompanyEmail removes a company's address.
func (e *PersonEraser) endCompanyEmail(ctx context.Context, req commands.Request, id uuid.UUID, end func(string, error) error) error {
	l, err := commands.Load(ctx, e.Commands.Fresh(), company.Kind, id.String())
	if err != nil {
		return err
	}
	_, err = commands.Handle(ctx, e.Commands, req.In(l.Workspace), company.Kind, id.String(), company.ForgetEmail{})
	return end(l.State.EmailSubject(id.String()), err)
}

// endBuyer requests the erasure of a buyer, unless it was requested before.
func (e *PersonEraser) endBuyer(ctx context.Context, req commands.Request, buyer string) error {
	hash, _, _ := strings.Cut(buyer, "-")
	l, err := commands.Load(ctx, e.Commands.Fresh(), enquiry.BuyerKind, hash)
	if err != nil || enquiry.Subject(hash, l.State.Erased) != buyer {
		return err
	}
	_, err = commands.Handle(ctx, e.Commands, req.In(uuid.Nil), enquiry.BuyerKind, hash, enquiry.EraseBuyer{})
	return err
}
