package accessproj

import (
	_ "embed"

	"bahi/domain/access/session"
	"bahi/domain/access/user"
	"bahi/domain/event"
	"bahi/projections"
)

//go:embed users.sql
var usersDDL string

// revised updates the revision of the user's stream, for events that change no other column.
func revised[E any](b *projections.Batch, e event.Recorded[E]) {
	b.Exec(`update account set revision = $2 where id = $1`, e.StreamID(), e.Revision)
}

// Users has the accounts of users. Its personal values are plaintext until their key is destroyed.
var Users = projections.Define("users", 5, usersDDL,
	projections.On(func(b *projections.Batch, e event.Recorded[user.Registered]) {
		b.Exec(`
			insert into account (id, workspace_id, email, email_key, first_name, last_name, auth_provider, email_verified, created_at, revision)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			e.StreamID(), e.Data.Workspace, e.Data.Email, e.Data.EmailKey, e.Data.FirstName, e.Data.LastName, e.Data.Provider, e.Data.Verified,
			e.At, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.EmailVerified]) {
		b.Exec(`update account set email_verified = true, revision = $2 where id = $1`, e.StreamID(), e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.ProfileChanged]) {
		b.Exec(`update account set
				first_name = case when $2 then $3 else first_name end,
				last_name = case when $4 then $5 else last_name end,
				phone = case when $6 then $7 else phone end,
				revision = $8
			where id = $1`, e.StreamID(),
			!e.Data.FirstName.IsZero(), e.Data.FirstName, !e.Data.LastName.IsZero(), e.Data.LastName,
			!e.Data.Phone.IsZero() || e.Data.NoPhone, e.Data.Phone, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.EmailChanged]) {
		b.Exec(`update account set email = $2, email_key = $3, email_verified = false, revision = $4 where id = $1`,
			e.StreamID(), e.Data.Email, e.Data.EmailKey, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.EmailClaimLost]) {
		b.Exec(`update account set email = null, email_key = null, email_verified = false, revision = $2 where id = $1`, e.StreamID(), e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.EmailRestored]) {
		b.Exec(`update account set email = $2, email_key = $3, email_verified = true, revision = $4 where id = $1`,
			e.StreamID(), e.Data.Email, e.Data.EmailKey, e.Revision)
	}),
	projections.On(revised[user.PasswordChanged]),
	projections.On(revised[user.IdentityLinked]),
	projections.On(func(b *projections.Batch, e event.Recorded[user.PictureChanged]) {
		b.Exec(`update account set picture = nullif($2, ''), revision = $3 where id = $1`, e.StreamID(), e.Data.Key, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.Granted]) {
		b.Exec(`update account set operator = $2, revision = $3 where id = $1`, e.StreamID(), e.Data.Operator, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[session.SignedIn]) {
		b.Exec(`update account set last_login_at = $2 where id = $1`, e.Data.User, e.At)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.DeletionRequested]) {
		b.Exec(`update account set delete_after = $2, revision = $3 where id = $1`, e.StreamID(), e.Data.DeleteAfter, e.Revision)
	}),
	projections.On(func(b *projections.Batch, e event.Recorded[user.DeletionCancelled]) {
		b.Exec(`update account set delete_after = null, revision = $2 where id = $1`, e.StreamID(), e.Revision)
	}),
	projections.On(revised[user.ErasureBegun]),
	projections.On(func(b *projections.Batch, e event.Recorded[user.Erased]) {
		b.Exec(`update account set email = null, email_key = null, first_name = null, last_name = null, phone = null, picture = null,
				operator = false, erased_at = $2, revision = $3
			where id = $1`, e.StreamID(), e.At, e.Revision)
	}),
)
