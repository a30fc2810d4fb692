package accesshttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/picture"
	"bahi/domain/access/user"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/wording"
	"bahi/http/api"
	"bahi/readmodels"
	"bahi/readmodels/accessview"
)

// pictures stores images. It is an edge of the process.
type pictures interface {
	Put(ctx context.Context, key, contentType string, content []byte) error
	// URL returns a link to an image that is valid for a while.
	URL(ctx context.Context, key string, lasts time.Duration) (string, error)
	Delete(ctx context.Context, key string) error
}

// companies has the query for companies of workspaces.
type companies interface {
	// OldestCompany returns the oldest of the companies of workspaces, nil for none.
	OldestCompany(ctx context.Context, at *readmodels.At, workspaces []uuid.UUID) (*uuid.UUID, error)
}

// pictureLink is the lifetime of the link to a picture (G13).
const pictureLink = time.Hour

var errOnlyUsers = fault.New(fault.Forbidden, "Only a user who signed in can do this")

// User is a user's own account.
type User struct {
	ID                uuid.UUID         `json:"id" doc:"ID of the user"`
	Email             *string           `json:"email" doc:"Email address"`
	FirstName         *string           `json:"first_name" doc:"First name"`
	LastName          *string           `json:"last_name" doc:"Last name"`
	Phone             *string           `json:"phone" doc:"Phone number in E.164 form"`
	CompanyID         *uuid.UUID        `json:"company_id" doc:"ID of the company; null: none"`
	WorkspaceID       uuid.UUID         `json:"workspace_id" doc:"ID of the workspace"`
	AuthProvider      string            `json:"auth_provider"       enum:"email,idp" doc:"Way of sign-in: email or idp"`
	EmailVerified     bool              `json:"email_verified" doc:"true: the user has verified the address"`
	PhoneVerified     bool              `json:"phone_verified" doc:"true: the user has verified the phone"`
	IsActive          bool              `json:"is_active" doc:"true: the user can sign in"`
	Permissions       actor.Permissions `json:"permissions" doc:"Permissions by area"`
	ProfilePictureURL *string           `json:"profile_picture_url" format:"uri" doc:"Works for an hour"`
	CreatedAt         time.Time         `json:"created_at" doc:"Time when the user was created"`
	LastLoginAt       *time.Time        `json:"last_login_at" doc:"Time of the last sign-in; null: none"`
	DeleteAfter       *time.Time        `json:"delete_after"        doc:"Time of the deletion requested by the user; null: none"`
	Warnings          []fault.Field     `json:"warnings,omitempty"  doc:"Invalid values. They are stored, but not used"`
}

func userOp(id, method, path, summary, limit string) api.Op {
	return api.Op{
		ID: id, Method: method, Path: "/api/v1/users/me" + path, Summary: summary, Tags: tags, Status: http.StatusOK,
		Limit: limit, Reads: []string{"users", "workspaces", "companies"},
	}
}

// users registers the operations of users on their own account.
func (r *Routes) users() {
	const limit = "users"
	api.Handle(r.API, userOp("get-me", "GET", "", "Read the caller's account", limit),
		ofUser(func(ctx context.Context, _ *struct{}, id uuid.UUID) (*api.Tagged[User], error) {
			return r.user(ctx, id)
		}))
	api.Handle(r.API, userOp("update-me", "PUT", "", "Edit the caller's account. Only fields in the body change.", limit),
		ofUser(func(ctx context.Context, in *struct{ Body accesscmd.Profile }, id uuid.UUID) (*api.Tagged[User], error) {
			if earlier, err := r.repeated(ctx, id); earlier != nil || err != nil {
				return earlier, err
			}
			if in.Body.Email.Present() {
				if err := api.Count(ctx, limitEmail); err != nil {
					return nil, err
				}
			}
			out, err := r.Accounts.Change(ctx, api.Request(ctx), id, in.Body)
			return r.written(ctx, id, out, err)
		}))
	api.Handle(r.API, userOp("change-password", "POST", "/password", "Change the caller's password. All other sessions end.", limit),
		ofUser(func(ctx context.Context, in *struct {
			Body struct {
				CurrentPassword string `json:"current_password" maxLength:"1000" doc:"Current password"`
				NewPassword     string `json:"new_password"     maxLength:"1000" doc:"New password"`
			}
		}, id uuid.UUID) (*api.Body[message], error) {
			out, err := r.Accounts.ChangePassword(ctx, api.Request(ctx), id, api.Caller(ctx).Session, in.Body.CurrentPassword, in.Body.NewPassword)
			return api.Reply(ctx, out, err, say[user.State]("Password changed"))
		}))
	api.Handle(r.API, userOp("request-deletion", "POST", "/delete-request",
		"Request the deletion of the caller's account", "users_delete_request"),
		ofUser(func(ctx context.Context, _ *struct{}, id uuid.UUID) (*api.Body[message], error) {
			out, err := r.Accounts.RequestDeletion(ctx, api.Request(ctx), id)
			return api.Reply(ctx, out, err, say[user.State]("The account will be deleted within 30 days"))
		}))
	r.picture()
}

func (r *Routes) picture() {
	op := userOp("upload-picture", "POST", "/profile-picture",
		"Set the caller's picture. JPEG, PNG or WebP, maximum 5 MB.", "users_picture")
	op.MaxBody, op.EmptyFile, op.Expensive = picture.MaxBytes, picture.ErrNotImage, true
	api.Handle(r.API, op, ofUser(func(ctx context.Context, in *struct{ File api.File }, id uuid.UUID) (*api.Tagged[User], error) {
		if earlier, err := r.repeated(ctx, id); earlier != nil || err != nil {
			return earlier, err
		}
		drawn, err := r.Studio.Make(ctx, in.File.Open())
		if err != nil {
			return nil, err
		}
		key := picture.Folder(id) + uuid.NewString()
		if err := r.Pictures.Put(ctx, key, drawn.Type, drawn.Bytes); err != nil {
			return nil, err
		}
		unused, out, err := r.Accounts.ChangePicture(ctx, api.Request(ctx), id, key)
		if _, refused := errors.AsType[*fault.Error](err); refused {
			return nil, errors.Join(err, r.Pictures.Delete(context.WithoutCancel(ctx), key))
		}
		if err != nil { // it may be the user's picture: unused ones are deleted with the user
			return nil, err
		}
		if unused != "" {
			if err := r.Pictures.Delete(ctx, unused); err != nil {
				r.Log.Warn("deleting a replaced picture failed; it will be deleted with its user", "user", id, "error", err)
			}
		}
		return r.written(ctx, id, out, nil)
	}))
}

// limitEmail counts changes of an address: each sends a mail, and reveals whether the address is registered.
const limitEmail = "users_email"

// repeated returns the user if an earlier request with the same key did the same, otherwise nil.
func (r *Routes) repeated(ctx context.Context, id uuid.UUID) (*api.Tagged[User], error) {
	out, done, err := r.Accounts.PreviousOutcome(ctx, api.Request(ctx), id)
	if !done || err != nil {
		return nil, err
	}
	api.SetWriteHeaders(ctx, out.Position, true)
	return r.user(ctx, id)
}

// ofUser returns a handler that refuses callers who are not users. It passes the user's id on.
func ofUser[I, O any](handle func(ctx context.Context, in *I, id uuid.UUID) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		who := api.Caller(ctx)
		if who.Type != "user" {
			return nil, errOnlyUsers
		}
		id, err := uuid.Parse(who.ID)
		if err != nil {
			return nil, err
		}
		return handle(ctx, in, id)
	}
}

// user returns the user.
func (r *Routes) user(ctx context.Context, id uuid.UUID) (*api.Tagged[User], error) {
	v, err := r.Views.User(ctx, api.At(ctx), id)
	if err != nil {
		return nil, err
	}
	return r.shown(ctx, v)
}

// written returns the user after a command. It reads missing values from the log: a stored write must not fail because a projection lags.
func (r *Routes) written(ctx context.Context, id uuid.UUID, out commands.Outcome[user.State], err error) (*api.Tagged[User], error) {
	if err != nil {
		return nil, err
	}
	api.SetWriteHeaders(ctx, out.Position, out.Replayed)
	v, err := r.Views.User(ctx, api.At(ctx).After(out.Position), id)
	if err == nil {
		return r.shown(ctx, v)
	}
	s, err := commands.Reveal(ctx, r.Commands, out.State)
	if err != nil {
		return nil, err
	}
	if v, err = r.Views.User(ctx, api.At(ctx), id); err != nil {
		v = accessview.User{ID: id, WorkspaceID: s.Workspace, AuthProvider: s.Provider, CreatedAt: out.CreatedAt}
	}
	v.Email, v.FirstName, v.LastName, v.Phone = s.Email.Shown(), s.FirstName.Shown(), s.LastName.Shown(), s.Phone.Shown()
	v.EmailVerified, v.Operator, v.DeleteAfter, v.Revision = s.Verified, s.Operator, s.DeleteAfter, out.Revision
	if v.Picture = nil; s.Picture != "" {
		v.Picture = &s.Picture
	}
	return r.shown(ctx, v)
}

// company returns the oldest of the companies of a user's workspaces, nil for none.
func (r *Routes) company(ctx context.Context, id uuid.UUID) (*uuid.UUID, error) {
	workspaces, err := r.Views.WorkspacesOf(ctx, api.At(ctx), id)
	if err != nil {
		return nil, err
	}
	return r.Companies.OldestCompany(ctx, api.At(ctx), workspaces)
}

// shown returns the user's own view of the account.
func (r *Routes) shown(ctx context.Context, v accessview.User) (*api.Tagged[User], error) {
	out := User{
		ID: v.ID, Email: v.Email, FirstName: v.FirstName, LastName: v.LastName, Phone: v.Phone, WorkspaceID: v.WorkspaceID,
		AuthProvider: v.AuthProvider, EmailVerified: v.EmailVerified, IsActive: true, Permissions: v.Permissions,
		CreatedAt: v.CreatedAt, LastLoginAt: v.LastLoginAt, DeleteAfter: v.DeleteAfter, Warnings: wording.Unread("phone", v.Phone),
	}
	var err error
	if out.CompanyID, err = r.company(ctx, v.ID); err != nil {
		return nil, err
	}
	out.Permissions.Operator = v.Operator
	if v.Picture != nil {
		link, err := r.Pictures.URL(ctx, *v.Picture, pictureLink)
		if err != nil {
			return nil, err
		}
		out.ProfilePictureURL = &link
	}
	return &api.Tagged[User]{ETag: api.Revision(v.Revision), Body: out}, nil
}
