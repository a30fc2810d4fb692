// Package messagingview reads the projections of the messaging area.
package messagingview

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/messaging/contact"
	"bahi/domain/person"
	"bahi/readmodels"
)

// Views reads the projections of the messaging area.
type Views struct {
	Reader *readmodels.Reader
}

// Contact is a contact of a workspace.
type Contact struct {
	ID            int64      `json:"id" doc:"ID of the contact"`
	Name          *string    `json:"name" doc:"null: erased"`
	Phone         *string    `json:"phone" doc:"Phone with country code, without a plus sign"`
	PhoneText     *string    `json:"phoneText" doc:"Unreadable phone as it was given; not used"`
	Email         *string    `json:"email" doc:"Email address"`
	Source        string     `json:"source" enum:"chat,social,manual" doc:"Origin of the contact"`
	OptIn         bool       `json:"optIn" doc:"true: the contact has opted in"`
	ReplyBot      bool       `json:"replyBot" doc:"true: a bot may reply"`
	Status        string     `json:"status" enum:"open,pending,resolved" doc:"Status of the contact"`
	OptInAt       *time.Time `json:"optInAt" doc:"Time of the opt-in or opt-out; null: never"`
	OptInBy       *string    `json:"optInBy" doc:"Actor of the consent: user:<id>, key:<id>, contact"`
	OptInEvidence *string    `json:"optInEvidence" doc:"Evidence of the consent; word or network: the contact gave it"`
	ListIDs       []int64    `json:"listIds" doc:"IDs of the contact lists"`
	LastMessageAt *time.Time `json:"lastMessageAt" doc:"Time of the last message; null: none"`
	Unread        int64      `json:"unread" doc:"Number of the contact's unread messages"`
	CreatedAt     time.Time  `json:"createdAt" doc:"Time when the contact was created"`
	UpdatedAt     time.Time  `json:"updatedAt" doc:"Time of the last change of the contact"`
	Revision      int64      `json:"revision" doc:"Revision for If-Match"`
}

// ContactFilter selects contacts that match all of its fields. An empty field matches all.
type ContactFilter struct {
	Search string `query:"search" maxLength:"200" doc:"Part of the name, phone or email; ignores case"`
	Status string `query:"status" enum:"open,pending,resolved" doc:"Only this status"`
	Source string `query:"source" enum:"chat,social,manual" doc:"Only contacts of this origin"`
	OptIn  string `query:"optIn"  enum:"true,false" doc:"true: only contacts with consent; false: only those without"`
	ListID int64  `query:"listId" minimum:"1" doc:"Only contacts in this list"`
	Unread string `query:"unread" enum:"true"     doc:"true: only contacts with unread messages"`
	Sort   string `query:"sort" enum:"recent" doc:"recent: by last message, newest first; absent: by creation, newest first"`
}

const contactColumns = `select id, name, phone, phone_text, email, source, opt_in, reply_bot, status, opt_in_at,
	replace(opt_in_by, 'api_key:', 'key:') as opt_in_by, opt_in_how as opt_in_evidence,
	coalesce((select array_agg(list_id order by list_id) from messaging_contacts.member where contact_id = contact.id), '{}') as list_ids,
	last_at as last_message_at, coalesce(unread, 0) as unread, created_at, updated_at, revision
	from messaging_contacts.contact left join messages.conversation on contact_id = contact.id`

// Contact reads a contact of a workspace. It returns [contact.ErrNotFound] for an unknown contact, and the other's id for a merged one.
func (v *Views) Contact(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (Contact, error) {
	c, err := readmodels.Row(ctx, v.Reader.From(at, "messages", "messaging_contacts"), contact.ErrNotFound, pgx.RowToStructByName[Contact],
		contactColumns+` where id = $1 and contact.workspace_id = $2`, id, workspace)
	if !errors.Is(err, contact.ErrNotFound) {
		return c, err
	}
	into, lookErr := first(readmodels.Rows(ctx, v.Reader.From(at, "messages", "messaging_contacts"), pgx.RowTo[int64],
		`select into_id from messaging_contacts.merged where id = $1 and workspace_id = $2`, id, workspace))
	switch {
	case lookErr != nil:
		return c, lookErr
	case into != 0:
		return c, contact.MergedError(into)
	}
	return c, err
}

// ContactsReached returns the contacts of the deployment with an email address or a phone. The phone is without its plus sign. An empty
// value matches none.
func (v *Views) ContactsReached(ctx context.Context, at *readmodels.At, email, phone string) ([]Owned, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "messaging_contacts"), pgx.RowToStructByPos[Owned],
		`select id, workspace_id from messaging_contacts.contact where email = nullif($1, '') or phone = nullif($2, '')`, email, phone)
}

// dialled removes separators between the digits of a phone.
var dialled = strings.NewReplacer(" ", "", "+", "", "-", "", "(", "", ")", "")

// where returns the condition of the filter, and its parameters.
func (f ContactFilter) where(workspace uuid.UUID) (where string, args pgx.NamedArgs) {
	args = pgx.NamedArgs{
		"workspace": workspace, "status": f.Status, "source": f.Source, "consents": f.OptIn == "true", "list": f.ListID,
		"text": person.Folded(f.Search), "digits": dialled.Replace(f.Search),
	}
	where = `contact.workspace_id = @workspace`
	for _, c := range []struct {
		asked bool
		fits  string
	}{
		{f.Status != "", `status = @status`},
		{f.Source != "", `source = @source`},
		{f.OptIn != "", `opt_in = @consents`},
		{f.ListID != 0, `exists (select from messaging_contacts.member where contact_id = contact.id and list_id = @list)`},
		{f.Unread != "", `conversation.workspace_id = @workspace and unread > 0`},
		{args["text"] != "", `(strpos(name_folded, @text) > 0 or strpos(email, @text) > 0 or strpos(phone, nullif(@digits, '')) > 0)`},
	} {
		if c.asked {
			where += ` and ` + c.fits
		}
	}
	return where, args
}

// Contacts lists a page of a workspace's contacts, newest first.
func (v *Views) Contacts(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, f ContactFilter) ([]Contact,
	int64, error) {
	where, args := f.where(workspace)
	l := readmodels.List[Contact]{
		As: pgx.RowToStructByName[Contact], SQL: contactColumns + ` where ` + where, Order: `id desc`, Args: args,
		Count: `select count(*) from messaging_contacts.contact where ` + where,
	}
	switch {
	case f == ContactFilter{Unread: "true", Sort: f.Sort}:
		l.Count = readmodels.Tally(`messages.conversation`, `talk`, `talk.workspace_id = @workspace`)
	case f.Unread != "":
		l.Count = `select count(*) from messaging_contacts.contact join messages.conversation on contact_id = contact.id where ` + where
	case f.ListID == 0 && f.Search == "":
		l.Count = readmodels.Tally(`messaging_contacts.contact`, `contact`, where)
	}
	if f.Sort != "" {
		l.Order = `last_message_at desc nulls last, id desc`
	}
	if f.Sort != "" && f.Unread != "" {
		l.Order = `last_message_at desc, id desc`
	}
	if f.Sort != "" && f.Unread == "" {
		// Contacts with a conversation are read by its index. The others are read only if these do not fill the page. "is true" prevents
		// the use of other indexes: a plan for small tables would read all contacts of the workspace for each conversation.
		l.SQL = `
			with newest as materialized (
				` + contactColumns + ` where (` + where + `) is true and conversation.workspace_id = @workspace order by last_at desc, id desc
				limit @limit::bigint + @skip::bigint
			)
			select * from newest
			union all
			(
				` + l.SQL + ` and not exists (select from messages.conversation talk where talk.contact_id = contact.id)
				order by id desc limit (select @limit::bigint + @skip::bigint - count(*) from newest)
			)`
	}
	return l.Page(ctx, v.Reader.From(at, "messages", "messaging_contacts"), page)
}
