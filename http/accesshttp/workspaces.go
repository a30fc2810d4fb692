package accesshttp

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/domain/access/workspace"
	"bahi/domain/actor"
	"bahi/domain/fault"
	"bahi/domain/person"
	"bahi/http/api"
	"bahi/readmodels/accessview"
)

// membership is a member with their permissions in a workspace.
type membership struct {
	WorkspaceID uuid.UUID         `json:"workspace_id" doc:"ID of the workspace"`
	UserID      uuid.UUID         `json:"user_id" doc:"ID of the user"`
	Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
	Revision    int64             `json:"revision" doc:"Revision for If-Match"`
}

// SchemaName distinguishes the type from accessview's in the document.
func (membership) SchemaName() string { return "HttpAccessMembership" }

// memberWritten returns a member after a command. The ETag is the member's, because all members are in one stream.
func memberWritten(ctx context.Context, in, user uuid.UUID, out commands.Outcome[workspace.State], err error) (*api.Tagged[membership],
	error) {
	out.Revision = out.State.Revisions[user]
	return api.WriteResult(ctx, out, err, func(out commands.Outcome[workspace.State]) membership {
		return membership{WorkspaceID: in, UserID: user, Permissions: out.State.Members[user], Revision: out.Revision}
	})
}

func workspaceOp(id, method, path, summary string) api.Op {
	op := api.Op{
		ID: id, Method: method, Path: path, Summary: summary, Tags: tags, Limit: "marketplace_general",
	}
	if method == http.MethodGet {
		op.Reads = []string{"users", "workspaces"}
	}
	switch {
	case !strings.Contains(path, "{workspace_id}"):
	case method == http.MethodGet:
		op.Permission = "marketplace:read"
	default:
		op.Permission = "marketplace:write"
	}
	return op
}

// InWorkspace has the workspace of the path.
type InWorkspace struct {
	Workspace uuid.UUID `path:"workspace_id" doc:"ID of the workspace"`
}

// enter returns the request in the path's workspace, if the caller has the level there.
func (r *Routes) enter(ctx context.Context, in InWorkspace, level actor.Level) (commands.Request, error) {
	req, who := api.Request(ctx), api.Caller(ctx)
	if who.Workspace != in.Workspace && !who.Permissions.Operator {
		var err error
		if who, err = r.Entrance.Enter(ctx, who, in.Workspace); err != nil {
			return req, err
		}
	}
	if !who.May(actor.Marketplace, level) {
		return req, api.ErrNotPermitted
	}
	who.Workspace = in.Workspace
	req.Actor = who
	return req.In(in.Workspace), nil
}

// InMember has the member of the path.
type InMember struct {
	InWorkspace
	User uuid.UUID `path:"user_id" doc:"ID of the user"`
}

// inInvitation has the invitation of the path.
type inInvitation struct {
	InWorkspace
	Invitation uuid.UUID `path:"invitation_id" doc:"ID of the invitation"`
}

// workspaces registers the operations on workspaces and their members.
func (r *Routes) workspaces() {
	own := workspaceOp("list-workspaces", "GET", "/api/v1/workspaces", "List the caller's workspaces")
	own.Reads = append(own.Reads, "companies")
	api.Handle(r.API, own,
		ofUser(func(ctx context.Context, _ *struct{}, id uuid.UUID) (*api.Body[[]accessview.Membership], error) {
			return api.Answer(r.Views.Memberships(ctx, api.At(ctx), id))
		}))
	api.Handle(r.API, workspaceOp("list-members", "GET", "/api/v1/workspaces/{workspace_id}/members", "List a workspace's members"),
		func(ctx context.Context, in *InWorkspace) (*api.Body[[]accessview.Member], error) {
			if _, err := r.enter(ctx, *in, actor.Read); err != nil {
				return nil, err
			}
			return api.Answer(r.Views.Members(ctx, api.At(ctx), in.Workspace))
		})
	api.Handle(r.API, workspaceOp("invite-member", "POST", "/api/v1/workspaces/{workspace_id}/invitations", "Invite a member by mail"),
		func(ctx context.Context, in *struct {
			InWorkspace
			Body struct {
				Email       string            `json:"email" maxLength:"254" doc:"Email address"`
				Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
			}
		}) (*api.Body[accesscmd.OpenInvitation], error) {
			req, err := r.enter(ctx, in.InWorkspace, actor.Write)
			if err != nil {
				return nil, err
			}
			email, err := person.Email("email", in.Body.Email)
			if err != nil {
				return nil, fault.Join(err, workspace.CheckGrant(in.Body.Permissions))
			}
			id, out, err := r.Accounts.Invite(ctx, req, in.Workspace, email, in.Body.Permissions)
			return api.Reply(ctx, out, err, func(out commands.Outcome[workspace.State]) accesscmd.OpenInvitation {
				i := out.State.Invitations[id]
				return accesscmd.OpenInvitation{ID: id, Email: &email, Permissions: i.Permissions, InvitedBy: i.By, ExpiresAt: i.ExpiresAt}
			})
		})
	list := workspaceOp("list-invitations", "GET", "/api/v1/workspaces/{workspace_id}/invitations", "List the open invitations")
	list.Reads = nil // it reads the log
	api.Handle(r.API, list, func(ctx context.Context, in *InWorkspace) (*api.Body[[]accesscmd.OpenInvitation], error) {
		if _, err := r.enter(ctx, *in, actor.Read); err != nil {
			return nil, err
		}
		return api.Answer(r.Accounts.Invitations(ctx, in.Workspace))
	})
	api.Handle(r.API, workspaceOp("withdraw-invitation", "DELETE", "/api/v1/workspaces/{workspace_id}/invitations/{invitation_id}",
		"Withdraw an invitation"),
		func(ctx context.Context, in *inInvitation) (*api.Nothing, error) {
			req, err := r.enter(ctx, in.InWorkspace, actor.Write)
			if err != nil {
				return nil, err
			}
			out, err := r.Accounts.Withdraw(ctx, req, in.Workspace, in.Invitation)
			return api.Done(ctx, out, err)
		})
	accept := workspaceOp("accept-invitation", "POST", "/api/v1/invitations/accept", "Join a workspace with the mailed token")
	accept.Status = http.StatusOK
	api.Handle(r.API, accept, ofUser(func(ctx context.Context, in *struct {
		Body struct {
			Token string `json:"token" maxLength:"500" doc:"Mailed token"`
		}
	}, id uuid.UUID) (*api.Tagged[membership], error) {
		joined, out, err := r.Accounts.Accept(ctx, api.Request(ctx), in.Body.Token, id)
		return memberWritten(ctx, joined, id, out, err)
	}))
	api.Handle(r.API, workspaceOp("change-member", "PATCH", "/api/v1/workspaces/{workspace_id}/members/{user_id}",
		"Change a member's permissions. Only areas in the body change."),
		func(ctx context.Context, in *struct {
			InMember
			Body struct {
				Permissions actor.Permissions `json:"permissions" doc:"Permissions by area"`
			}
		}) (*api.Tagged[membership], error) {
			req, err := r.enter(ctx, in.InWorkspace, actor.Write)
			if err != nil {
				return nil, err
			}
			out, err := r.Accounts.ChangeMember(ctx, req, in.Workspace, in.User, in.Body.Permissions)
			return memberWritten(ctx, in.Workspace, in.User, out, err)
		})
	api.Handle(r.API, workspaceOp("remove-member", "DELETE", "/api/v1/workspaces/{workspace_id}/members/{user_id}", "Remove a member"),
		func(ctx context.Context, in *InMember) (*api.Nothing, error) {
			req, err := r.enter(ctx, in.InWorkspace, actor.Write)
			if err != nil {
				return nil, err
			}
			out, err := r.Accounts.RemoveMember(ctx, req, in.Workspace, in.User)
			return api.Done(ctx, out, err)
		})
}
