package ledgerview

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/event"
	"bahi/domain/ledger/confirmation"
	"bahi/domain/unit"
	"bahi/readmodels"
)

// Candidates returns accounts with their balances as of a day, and the position at which it read them. It returns the
// named accounts, or the open accounts of a ledger.
func (v *Views) Candidates(ctx context.Context, workspace uuid.UUID, kind string, accounts []int64, day unit.Date) (
	[]confirmation.Candidate, event.Position, error) {
	found, position, err := readmodels.CompleteAsOf(func(at *readmodels.At) ([]confirmation.Candidate, error) {
		return readmodels.Rows(ctx, v.Reader.From(at, "books", "confirmations", "messaging_contacts"),
			func(row pgx.CollectableRow) (c confirmation.Candidate, err error) {
				err = row.Scan(&c.Ledger, &c.Account, &c.Name, &c.Closed, &c.Contact, &c.Erased, &c.Phone, &c.OptIn)
				return c, err
			}, `
			select a.ledger, a.id, a.name, a.deleted_position <> 9223372036854775807, coalesce(p.contact_id, 0), k.id is null,
				coalesce(k.phone, ''), coalesce(k.opt_in, false)
			from books.account a left join confirmations.party p on p.account_id = a.id
				left join messaging_contacts.contact k on k.id = p.contact_id and k.workspace_id = a.workspace_id
			where a.workspace_id = $1 and (a.id = any($2) or a.ledger = $3 and a.deleted_position = 9223372036854775807)
			order by a.id`, workspace, accounts, kind)
	})
	if err != nil {
		return nil, 0, err
	}
	asked := make([]Closing, len(found))
	for i, c := range found {
		asked[i] = Closing{Account: c.Account, Day: day, KnownAt: position}
	}
	closed, err := v.Closings(ctx, nil, workspace, asked)
	for i, c := range closed {
		if c.Cash != nil {
			found[i].Cash, found[i].Fine = unit.MoneyOf(c.Cash.Decimal), unit.GramsOf(c.Fine.Decimal)
		}
	}
	return found, position, err
}

// Asked returns the newest request that a message's contact received before the message, with the contact's later texts.
func (v *Views) Asked(ctx context.Context, workspace uuid.UUID, message int64) (a confirmation.Asked, found bool, err error) {
	none := errors.New("none")
	a, err = readmodels.Complete(func(at *readmodels.At) (confirmation.Asked, error) {
		return readmodels.Row(ctx, v.Reader.From(at, "confirmations", "messages"), none, pgx.RowToStructByPos[confirmation.Asked], `
			with asked as (
				select r.confirmation_id, r.account_id, r.contact_id, c.position, m.channel_id, q.began as called, m.began
				from messages.message m join confirmations.asked r on r.contact_id = m.contact_id and r.channel_id = m.channel_id
					join confirmations.confirmation c on c.id = r.confirmation_id join messages.message q on q.id = r.message_id
				where m.id = $2 and m.workspace_id = $1 and m.inbound and m.type <> 'reaction' and q.began < m.began and q.status <> 'failed'
				order by q.began desc limit 1),
			said as (
				select m.id, coalesce(m.text, '') as text, m.began from asked a join messages.message m on m.contact_id = a.contact_id
					and m.channel_id = a.channel_id and m.began > a.called and m.began <= a.began
				where m.inbound and m.type <> 'reaction')
			select confirmation_id, account_id, contact_id, position, (select array_agg(id order by began) from said),
				(select array_agg(text order by began) from said) from asked`, workspace, message)
	})
	if errors.Is(err, none) {
		return a, false, nil
	}
	return a, err == nil, err
}

// Unanswered returns the newest confirmation on a channel with a party that has not replied, or none.
func (v *Views) Unanswered(ctx context.Context, at *readmodels.At, workspace uuid.UUID, channel int64) ([]int64, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "confirmations"), pgx.RowTo[int64], `
		select confirmation_id from confirmations.asked
		where workspace_id = $1 and channel_id = $2 and outcome is null and message_id is not null limit 1`, workspace, channel)
}

// Confirmation is a request to parties to confirm their balances.
type Confirmation struct {
	ID         int64              `json:"id" doc:"ID of the confirmation; 0 in a dry run"`
	Kind       *string            `json:"kind" doc:"Ledger; null: the accounts were named"`
	AsOf       unit.Date          `json:"as_of" doc:"Last day of the balances"`
	Position   event.Position     `json:"position" doc:"Position of the log at which the balances were read"`
	ChannelID  int64              `json:"channelId" doc:"ID of the channel"`
	TemplateID int64              `json:"templateId" doc:"ID of the template"`
	CampaignID int64              `json:"campaignId" doc:"ID of the campaign that sends the messages; 0 in a dry run"`
	Document   bool               `json:"document" doc:"true: messages contain the statement as a PDF; false: only the link"`
	CreatedAt  *time.Time         `json:"created_at" doc:"Time of the request; null in a dry run"`
	Counts     ConfirmationCounts `json:"counts" doc:"Number of parties by status"`
}

// ConfirmationCounts has the numbers of a confirmation's parties. Each party has one status.
type ConfirmationCounts struct {
	Parties   int64       `json:"parties" doc:"All parties"`
	Sent      int64       `json:"sent" doc:"Parties with a message that the network accepted"`
	Read      int64       `json:"read" doc:"Parties that have read the message"`
	Open      int64       `json:"open" doc:"Status open: the message is not sent yet"`
	Failed    int64       `json:"failed" doc:"Status failed: the network refused the message"`
	Silent    int64       `json:"silent" doc:"Status silent: the party has not replied"`
	Answered  int64       `json:"answered" doc:"Status answered: a user must decide about the reply"`
	Confirmed int64       `json:"confirmed" doc:"Status confirmed"`
	Disputed  int64       `json:"disputed" doc:"Status disputed"`
	Skipped   int64       `json:"skipped" doc:"Status skipped"`
	Overtaken int64       `json:"overtaken" doc:"Parties with a request and a later change of a row dated on or before as_of"`
	Reasons   SkipReasons `json:"skipped_reasons" doc:"Skipped parties by the reason"`
}

// SkipReasons has the numbers of skipped parties by reason.
type SkipReasons struct {
	NoContact     int64 `json:"no_contact" doc:"The account has no contact"`
	ContactErased int64 `json:"contact_erased" doc:"The contact was deleted"`
	NoPhone       int64 `json:"no_phone" doc:"The contact has no phone"`
	NoConsent     int64 `json:"no_consent" doc:"The contact has not opted in"`
	AccountClosed int64 `json:"account_closed" doc:"The account was deleted"`
	Cancelled     int64 `json:"cancelled" doc:"The campaign was cancelled before the message was sent"`
}

// ConfirmationAfter returns a confirmation after its request: no message is sent yet.
func ConfirmationAfter(id int64, s confirmation.State) Confirmation {
	c := Confirmation{ID: id, AsOf: s.AsOf, Position: s.Position, ChannelID: s.Channel, TemplateID: s.Template, CampaignID: s.Campaign,
		Document: s.Document}
	if s.Kind != "" {
		c.Kind = &s.Kind
	}
	n, r := &c.Counts, &c.Counts.Reasons
	reasons := map[string]*int64{confirmation.NoContact: &r.NoContact, confirmation.ContactErased: &r.ContactErased,
		confirmation.NoPhone: &r.NoPhone, confirmation.NoConsent: &r.NoConsent, confirmation.AccountClosed: &r.AccountClosed}
	for _, p := range s.Parties {
		if n.Parties++; p.Skipped == "" {
			n.Open++
			continue
		}
		n.Skipped++
		*reasons[p.Skipped]++
	}
	return c
}

// parties is SQL of the state of each party of a confirmation c. overtaken is true if the books have changed since the confirmation's
// position.
const parties = `
	select r.*, case when r.outcome is not null then r.outcome when r.reason is not null then 'skipped'
		when r.state in ('failed', 'refused') then 'failed' when r.written then 'answered' when r.sent then 'silent' else 'open' end as status
	from (
		select r.*, m.state, coalesce(m.state in ('sent', 'delivered', 'read'), false) as sent, coalesce(m.state = 'read', false) as read,
			case when m.state = 'skipped' then case when k.id is null then 'contact_erased' when coalesce(k.phone, '') = '' then 'no_phone'
				when not k.opt_in then 'no_consent' else 'cancelled' end else r.skipped end as reason,
			r.outcome is null and exists (select from messages.message q join messages.message i on i.contact_id = r.contact_id
				and i.channel_id = r.channel_id and i.inbound and i.type <> 'reaction' and i.began > q.began where q.id = r.message_id) as written,
			r.message_id is not null and exists (select from books.balance_history p where p.account_id = r.account_id
				and p.position > c.position and p.day <= c.as_of - date '1970-01-01') as overtaken
		from confirmations.asked r left join campaigns.recipient m on m.id = r.message_id
			left join messaging_contacts.contact k on k.id = r.contact_id
		where r.confirmation_id = c.id) r`

var confirmationTables = []string{"confirmations", "campaigns", "messages", "messaging_contacts", "books"}

// ConfirmationReads are the projections that show confirmations.
func ConfirmationReads() []string { return slices.Clone(confirmationTables) }

const confirmationSQL = `
	select c.id, c.kind, c.as_of, c.position, c.channel_id, c.template_id, c.campaign_id, c.document, c.created_at, n.*
	from confirmations.confirmation c cross join lateral (
		select count(*), count(*) filter (where sent), count(*) filter (where read), count(*) filter (where status = 'open'),
			count(*) filter (where status = 'failed'), count(*) filter (where status = 'silent'), count(*) filter (where status = 'answered'),
			count(*) filter (where status = 'confirmed'), count(*) filter (where status = 'disputed'),
			count(*) filter (where status = 'skipped'), count(*) filter (where overtaken),
			count(*) filter (where status = 'skipped' and reason = 'no_contact'),
			count(*) filter (where status = 'skipped' and reason = 'contact_erased'),
			count(*) filter (where status = 'skipped' and reason = 'no_phone'),
			count(*) filter (where status = 'skipped' and reason = 'no_consent'),
			count(*) filter (where status = 'skipped' and reason = 'account_closed'),
			count(*) filter (where status = 'skipped' and reason = 'cancelled')
		from (` + parties + `) party) n`

func asConfirmation(row pgx.CollectableRow) (c Confirmation, err error) {
	var day time.Time
	n, r := &c.Counts, &c.Counts.Reasons
	err = row.Scan(&c.ID, &c.Kind, &day, &c.Position, &c.ChannelID, &c.TemplateID, &c.CampaignID, &c.Document, &c.CreatedAt,
		&n.Parties, &n.Sent, &n.Read, &n.Open, &n.Failed, &n.Silent, &n.Answered, &n.Confirmed, &n.Disputed, &n.Skipped, &n.Overtaken,
		&r.NoContact, &r.ContactErased, &r.NoPhone, &r.NoConsent, &r.AccountClosed, &r.Cancelled)
	c.AsOf = unit.DateOf(day)
	return c, err
}

// Confirmation reads a confirmation, or returns [confirmation.ErrNotFound].
func (v *Views) Confirmation(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id int64) (Confirmation, error) {
	return readmodels.Row(ctx, v.Reader.From(at, confirmationTables...), confirmation.ErrNotFound, asConfirmation,
		confirmationSQL+` where c.id = $1 and c.workspace_id = $2`, id, workspace)
}

// Confirmations lists a page of a workspace's confirmations, newest first.
func (v *Views) Confirmations(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page) ([]Confirmation, int64,
	error) {
	return readmodels.List[Confirmation]{
		As: asConfirmation, SQL: confirmationSQL + ` where c.workspace_id = @workspace order by c.id desc limit @limit offset @skip`,
		Count: `select count(*) from confirmations.confirmation c where c.workspace_id = @workspace`,
		Args:  pgx.NamedArgs{"workspace": workspace},
	}.Page(ctx, v.Reader.From(at, confirmationTables...), page)
}

// ConfirmationParty is a party of a confirmation.
type ConfirmationParty struct {
	ID              int64      `json:"id" doc:"ID of the account"`
	Kind            string     `json:"kind" enum:"bullion,client,karigar,polisher" doc:"Ledger"`
	Name            string     `json:"name" doc:"Name of the account"`
	ContactID       *int64     `json:"contactId" doc:"ID of the contact; null: none"`
	Cash            unit.Sum   `json:"cash_balance" doc:"IN less OUT as of the day, in rupees"`
	CashPosition    string     `json:"cash_position" enum:"we_owe,they_owe,settled" doc:"Who owes cash"`
	Crystal         unit.Sum   `json:"crystal_balance" doc:"IN less OUT as of the day, in grams of fine metal"`
	CrystalPosition string     `json:"crystal_position" enum:"we_owe,they_owe,settled" doc:"Who owes metal"`
	Status          string     `json:"status" enum:"open,failed,skipped,silent,answered,confirmed,disputed" doc:"State of the request"`
	Reason          *string    `json:"reason" doc:"Reason why the party was skipped"`
	Sent            bool       `json:"sent" doc:"The network accepted the message"`
	Read            bool       `json:"read" doc:"The party has read the message"`
	Overtaken       bool       `json:"overtaken" doc:"A row dated on or before as_of was changed later"`
	MessageID       *int64     `json:"messageId" doc:"ID of the message that was sent; null: none"`
	AnswerID        *int64     `json:"answerId" doc:"ID of the reply; null: none"`
	AnsweredAt      *time.Time `json:"answered_at" doc:"Time of the outcome"`
	AnsweredBy      *string    `json:"answered_by" doc:"contact:<id>, or the actor who decided"`
	Note            *string    `json:"note" doc:"Note of the user who decided"`
}

// PartyFilter selects parties. An empty status selects all.
type PartyFilter struct {
	Status string `query:"status" enum:"open,failed,skipped,silent,answered,confirmed,disputed" doc:"Only this status"`
}

// owes returns the SQL for the side that owes a balance.
func owes(column string) string {
	return `case sign(` + column + `) when 1 then 'we_owe' when -1 then 'they_owe' else 'settled' end`
}

var partySQL = `
	select p.account_id, p.ledger, a.name, p.contact_id, p.cash::text, ` + owes(`p.cash`) + `, p.fine::text, ` + owes(`p.fine`) + `,
		p.status, case when p.status = 'skipped' then p.reason end, p.sent, p.read, p.overtaken, p.message_id, p.answer_id, p.answered_at,
		p.answered_by, p.note
	from confirmations.confirmation c cross join lateral (` + parties + `) p join books.account a on a.id = p.account_id
	where c.id = @id and c.workspace_id = @workspace`

// ConfirmationParties lists a page of the parties of a confirmation by their accounts.
func (v *Views) ConfirmationParties(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page, id int64,
	f PartyFilter) ([]ConfirmationParty, int64, error) {
	return readmodels.List[ConfirmationParty]{
		As: pgx.RowToStructByPos[ConfirmationParty], SQL: partySQL + ` and (@status = '' or p.status = @status)
			order by p.account_id limit @limit offset @skip`,
		Count: `select count(*) from (` + partySQL + ` and (@status = '' or p.status = @status)) p`,
		Args:  pgx.NamedArgs{"id": id, "workspace": workspace, "status": f.Status},
	}.Page(ctx, v.Reader.From(at, confirmationTables...), page)
}

// ConfirmationParty reads a party of a confirmation, or returns [confirmation.ErrNoParty].
func (v *Views) ConfirmationParty(ctx context.Context, at *readmodels.At, workspace uuid.UUID, id, account int64) (ConfirmationParty,
	error) {
	return readmodels.Row(ctx, v.Reader.From(at, confirmationTables...), confirmation.ErrNoParty,
		pgx.RowToStructByPos[ConfirmationParty], partySQL+` and p.account_id = @account`,
		pgx.NamedArgs{"id": id, "workspace": workspace, "account": account})
}
