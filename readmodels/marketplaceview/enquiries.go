package marketplaceview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"bahi/domain/marketplace/enquiry"
	"bahi/domain/person"
	"bahi/readmodels"
)

// SentEnquiry has the data of an enquiry that the buyer sees.
type SentEnquiry struct {
	ID             uuid.UUID  `json:"id" doc:"ID of the enquiry"`
	ToCompanyID    uuid.UUID  `json:"to_company_id" doc:"ID of the company that receives the enquiry"`
	ProductID      *uuid.UUID `json:"product_id" doc:"ID of the product; null: none"`
	Message        *string    `json:"message" doc:"Message to the company; null: none"`
	Quantity       *int64     `json:"quantity" doc:"Number of pieces"`
	UserName       *string    `json:"user_name"  doc:"null: erased"`
	UserEmail      *string    `json:"user_email" doc:"null: erased"`
	UserPhone      *string    `json:"user_phone" doc:"Phone number of the buyer"`
	SourcePlatform string     `json:"source_platform" doc:"Platform on which the buyer sent the enquiry"`
	Status         string     `json:"status" enum:"pending,contacted,qualified,converted,lost" doc:"Status of the enquiry"`
	CRMLeadID      *string    `json:"crm_lead_id" doc:"ID of the lead in the CRM; null: not pushed yet"`
	CreatedAt      time.Time  `json:"created_at" doc:"Time when the enquiry was created"`
	UpdatedAt      time.Time  `json:"updated_at" doc:"Time of the last change of the enquiry"`
	Revision       int64      `json:"revision" doc:"Revision for If-Match"`
}

// Enquiry has the data of an enquiry that the receiving company sees.
type Enquiry struct {
	SentEnquiry

	Notes         *string       `json:"notes" doc:"Notes"`
	Notifications Notifications `json:"notifications" doc:"Notifications of the company"`
}

// Notifications has the results of notifying the company.
type Notifications struct {
	Chat  Notification `json:"chat" doc:"Notification by chat"`
	Email Notification `json:"email" doc:"Notification by mail"`
	CRM   Notification `json:"crm" doc:"Notification in the CRM"`
}

// Notification is the result of notifying the company in one way.
type Notification struct {
	Status string    `json:"status" enum:"queued,sent,failed,skipped" doc:"Status of the notification"`
	At     time.Time `json:"at" doc:"Time of the newest attempt"`
	Error  *string   `json:"error" doc:"Error of the newest attempt; null: none"`
}

const enquiryColumns = `r.id, r.company_id, r.product_id, r.message, r.quantity, r.user_name, r.user_email, r.user_phone, ` +
	`r.source_platform, r.status,
	r.crm_lead_id, r.created_at, r.updated_at, r.revision, r.notes, r.notifications`

func enquiryOf(row pgx.CollectableRow) (e Enquiry, err error) {
	return e, row.Scan(e.columns()...)
}

func (e *Enquiry) columns() []any {
	return []any{
		&e.ID, &e.ToCompanyID, &e.ProductID, &e.Message, &e.Quantity, &e.UserName, &e.UserEmail, &e.UserPhone, &e.SourcePlatform, &e.Status,
		&e.CRMLeadID, &e.CreatedAt, &e.UpdatedAt, &e.Revision, &e.Notes, &e.Notifications,
	}
}

// Enquiry reads an enquiry to a company of a workspace, or returns [enquiry.ErrNotFound]. It finds spam only if spam is true.
func (v *Views) Enquiry(ctx context.Context, at *readmodels.At, workspace, id uuid.UUID, spam bool) (Enquiry, error) {
	return readmodels.Row(ctx, v.Reader.From(at, "enquiries"), enquiry.ErrNotFound, enquiryOf,
		`select `+enquiryColumns+` from enquiries.enquiry r where r.id = $1 and r.workspace_id = $2 and r.spam = $3`, id, workspace, spam)
}

// EnquiryFilter selects the enquiries that match all its fields. An empty field matches all.
type EnquiryFilter struct {
	Company uuid.UUID
	Status  string
	Source  string
	Spam    bool // only spam; false: no spam
}

// Enquiries lists a page of the enquiries to a workspace's companies, newest first.
func (v *Views) Enquiries(ctx context.Context, at *readmodels.At, workspace uuid.UUID, page readmodels.Page,
	f EnquiryFilter) (rows []Enquiry,
	total int64, err error) {
	args := pgx.NamedArgs{
		"workspace": workspace, "spam": f.Spam, "company": f.Company, "status": f.Status, "source": person.Folded(f.Source),
	}
	where := `r.workspace_id = @workspace and r.spam = @spam`
	if f.Company != uuid.Nil {
		where += ` and r.company_id = @company`
	}
	if f.Status != "" {
		where += ` and r.status = @status`
	}
	if f.Source != "" {
		where += ` and r.source_platform = @source`
	}
	return readmodels.List[Enquiry]{
		As: enquiryOf, SQL: `select ` + enquiryColumns + ` from enquiries.enquiry r where ` + where, Order: `created_at desc, id desc`,
		Count: readmodels.Tally(`enquiries.enquiry`, `r`, where), Args: args,
	}.Page(ctx, v.Reader.From(at, "enquiries"), page)
}

// PlacedEnquiry is an enquiry with its position in the log.
type PlacedEnquiry struct {
	Enquiry

	Position int64
}

// EnquiriesAfter returns the first enquiries to a workspace's companies after a position, oldest first.
func (v *Views) EnquiriesAfter(ctx context.Context, at *readmodels.At, workspace uuid.UUID, after int64, limit int) ([]PlacedEnquiry,
	error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "enquiries"), func(row pgx.CollectableRow) (e PlacedEnquiry, err error) {
		return e, row.Scan(append(e.columns(), &e.Position)...)
	}, `select `+enquiryColumns+`, r.position from enquiries.enquiry r
		where r.workspace_id = $1 and not r.spam and r.position > $2 order by r.position limit $3`, workspace, after, limit)
}

// Move is a change of an enquiry's status.
type Move struct {
	From   *string   `json:"from" doc:"Status before the change; null: the enquiry was sent"`
	To     string    `json:"to" doc:"Status after the change"`
	At     time.Time `json:"at" doc:"Time of the change"`
	Actor  string    `json:"actor" doc:"Actor, such as user:<id> or api_key:<id>"`
	Reason *string   `json:"reason" doc:"Reason of the change; null: none"`
}

// SchemaName implements http/api's Named.
func (Move) SchemaName() string { return "EnquiryMove" }

// EnquiryHistory lists the status changes of an enquiry to a workspace's company, oldest first. It returns none for an unknown enquiry.
func (v *Views) EnquiryHistory(ctx context.Context, at *readmodels.At, workspace, id uuid.UUID) ([]Move, error) {
	return readmodels.Rows(ctx, v.Reader.From(at, "enquiries"), pgx.RowToStructByPos[Move], `
		select m.moved_from, m.moved_to, m.at, m.actor, nullif(m.reason, '')
		from enquiries.status_change m join enquiries.enquiry r on r.id = m.enquiry_id
		where m.enquiry_id = $1 and m.workspace_id = $2 and not r.spam order by m.ordinal`, id, workspace)
}

// CountEnquiries counts the enquiries to a workspace's company in the hour after a time, without spam, up to most. The comparison of the
// workspace prevents the use of its index: a plan for a small table would read all enquiries to the workspace.
func (v *Views) CountEnquiries(ctx context.Context, at *readmodels.At, workspace, of uuid.UUID, hour time.Time, most int64) (int64,
	error) {
	return readmodels.Row(ctx, v.Reader.From(at, "enquiries"), nil, pgx.RowTo[int64], `
		select count(*) from (
			select from enquiries.enquiry r
			where (r.workspace_id = $1) is true and r.company_id = $2 and r.created_at >= $3 and r.created_at < $4 and not r.spam limit $5
		) counted`, workspace, of, hour, hour.Add(time.Hour), most)
}

// Notice is a notification of a company or the CRM, or a message of a sandbox channel.
type Notice struct {
	Enquiry *uuid.UUID // nil: a message
	Message *int64
	At      time.Time
	To      string
	Text    *string // nil: erased
	Status  string
	Error   *string
}

// Notices lists the notifications of all companies by a port, newest first, after the first skip, and returns the number of all. Each has
// the status in the enquiry, because a receipt arrives later and has no text and no recipient. For chat it includes the messages of sandbox
// channels.
func (v *Views) Notices(ctx context.Context, at *readmodels.At, port string, skip, limit int) (rows []Notice, total int64, err error) {
	return readmodels.List[Notice]{As: pgx.RowToStructByPos[Notice], Order: `at desc, enquiry_id desc, id desc`, SQL: `
		select n.enquiry_id, null::bigint as id, n.at, n.recipient, n.text, coalesce(e.notifications->n.port->>'status', n.status),
			e.notifications->n.port->>'error'
		from enquiries.notice n left join enquiries.enquiry e on e.id = n.enquiry_id where n.port = @port
		union all
		select null, m.id, m.at, coalesce('+' || c.phone, c.name, ''), coalesce(m.text, m.media_url), 'kept', null
		from messages.message m left join messaging_contacts.contact c on c.id = m.contact_id
		where @port = 'chat' and not m.inbound and starts_with(m.provider_id, 'sandbox.')`, Args: pgx.NamedArgs{"port": port},
	}.Skip(ctx, v.Reader.From(at, "enquiries", "messages", "messaging_contacts"), int64(skip), limit)
}
