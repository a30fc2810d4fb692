package accesshttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"bahi/commands"
	"bahi/commands/accesscmd"
	"bahi/commands/accesscmd/credentials"
	"bahi/domain/access/user"
	"bahi/domain/fault"
	"bahi/http/api"
	"bahi/providers/idp"
)

// These are the browser's cookies. Their path is the common path of the operations that read them.
const (
	refreshCookie = "bahi_refresh"
	flowCookie    = "bahi_sign_in"
	authPath      = "/api/v1/auth"
	limitAuth     = "auth"
)

var errNoProvider = fault.New(fault.Unavailable, "No identity provider is configured")

// message is a response with a text for people.
type message struct {
	Message string `json:"message" doc:"Result of the request"`
}

// say returns the same message for every outcome.
func say[S any](words string) func(commands.Outcome[S]) message {
	return func(commands.Outcome[S]) message { return message{words} }
}

// registeredUser is the response to a registration.
type registeredUser struct {
	ID            uuid.UUID `json:"id" doc:"ID of the user"`
	Email         string    `json:"email" doc:"Email address"`
	FirstName     string    `json:"first_name" doc:"First name"`
	LastName      string    `json:"last_name" doc:"Last name"`
	EmailVerified bool      `json:"email_verified" doc:"true: the user has verified the address"`
	CreatedAt     time.Time `json:"created_at" doc:"Time when the user was created"`
}

// Tokens are the client's tokens.
type Tokens struct {
	AccessToken  string `json:"access_token" doc:"Token for the header Authorization"`
	RefreshToken string `json:"refresh_token" doc:"Token that is exchanged for new tokens"`
	TokenType    string `json:"token_type" enum:"bearer" doc:"Always Bearer"`
}

// signedIn is the response to a sign-in.
type signedIn struct {
	Tokens
	User signedInUser `json:"user" doc:"The user"`
}

// signedInUser is the user who signed in.
type signedInUser struct {
	ID        uuid.UUID `json:"id" doc:"ID of the user"`
	Email     string    `json:"email" doc:"Email address"`
	FirstName string    `json:"first_name" doc:"First name"`
}

// refreshed is a response with new tokens. It also renews the browser's cookie, if any.
type refreshed struct {
	Cookie []http.Cookie `header:"Set-Cookie"`
	Body   Tokens
}

// Refresh is a request for new tokens.
type Refresh struct {
	Body *struct {
		RefreshToken string `json:"refresh_token,omitempty" maxLength:"4000" doc:"Token of the last sign-in or refresh"`
	}
	Kept string `cookie:"bahi_refresh" doc:"Instead of the body, after signing in through an identity provider"`

	header func(name, value string) // sets a header of the response, even of a refusal
}

// Resolve is for huma.
func (in *Refresh) Resolve(ctx huma.Context) []error {
	in.header = ctx.AppendHeader
	return nil
}

// redirect sends a browser to another address, without a referrer, because the address may have a token.
type redirect struct {
	Status   int
	Location string        `header:"Location"`
	Cookie   []http.Cookie `header:"Set-Cookie"`
	Referrer string        `header:"Referrer-Policy"`
	Cache    string        `header:"Cache-Control"`
}

// authOp returns an operation of the group. They share one limit, and take no Idempotency-Key (DESIGN.md, hard case 2).
func authOp(id, method, path, summary string) api.Op {
	return api.Op{
		ID: id, Method: method, Path: authPath + path, Summary: summary, Tags: tags, Status: http.StatusOK,
		Public: true, Limit: limitAuth, NoKey: true, Untried: true,
	}
}

// proved marks an operation with a token that proves the request.
func proved(op api.Op) api.Op {
	op.Proof = true
	return op
}

// Auth registers registration and sign-in.
func (r *Routes) Auth() {
	r.registration()
	r.undo()
	r.sessions()
	r.passwords()
	r.provider()
}

func (r *Routes) registration() {
	op := authOp("register", "POST", "/register", "Register an account. Bahi mails a link that verifies the address.")
	op.Status, op.Untried = http.StatusCreated, false
	api.Handle(r.API, op, func(ctx context.Context, in *struct{ Body accesscmd.Registration }) (*api.Body[registeredUser], error) {
		made, err := r.Accounts.Register(ctx, api.Request(ctx), in.Body)
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, made.Position, false)
		return api.Answer(registeredUser{ID: made.ID, Email: made.Email, FirstName: made.FirstName, LastName: made.LastName, CreatedAt: made.At},
			nil)
	})
	api.Handle(r.API, proved(authOp("verify-email", "POST", "/verify-email", "Confirm an address with the mailed token")),
		func(ctx context.Context, in *struct {
			Body struct {
				Token string `json:"token" maxLength:"500" doc:"Mailed token"`
			}
		}) (*api.Body[message], error) {
			out, err := r.Accounts.VerifyEmail(ctx, api.Request(ctx), in.Body.Token)
			return api.Reply(ctx, out, err, say[user.State]("Email verified"))
		})
}

// undo extends the specification: without it, an attacker could keep an account by changing its address.
func (r *Routes) undo() {
	op := authOp("undo-email-change", "POST", "/email-change/undo", "Restore an account's former email address with the mailed token. "+
		"All sessions of the account end.")
	api.Handle(r.API, proved(op), func(ctx context.Context, in *struct {
		Body struct {
			Token string `json:"token" maxLength:"500" doc:"Mailed token"`
		}
	}) (*api.Body[message], error) {
		out, err := r.Accounts.UndoEmail(ctx, api.Request(ctx), in.Body.Token)
		return api.Reply(ctx, out, err, say[user.State]("The account has this address again, and all its sessions have ended"))
	})
}

func (r *Routes) sessions() {
	login := authOp("login", "POST", "/login", "Sign in with a password")
	login.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
	api.Handle(r.API, login, func(ctx context.Context, in *struct {
		Body struct {
			Email    string `json:"email"    maxLength:"1000" doc:"Email address"`
			Password string `json:"password" maxLength:"1000" doc:"Password"`
		}
	}) (*api.Body[signedIn], error) {
		s, err := r.Accounts.SignIn(ctx, api.Request(ctx), in.Body.Email, in.Body.Password)
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, s.Position, false)
		return api.Answer(signedIn{Tokens: tokens(s.Tokens), User: signedInUser{ID: s.Tokens.User, Email: s.Email, FirstName: s.FirstName}}, nil)
	})
	logout := authOp("logout", "POST", "/logout", "End the session of the access token")
	logout.Public = false
	api.Handle(r.API, logout, func(ctx context.Context, _ *struct{}) (*struct {
		Cookie []http.Cookie `header:"Set-Cookie"`
		Body   message
	}, error,
	) {
		who := api.Caller(ctx)
		if who.Session == uuid.Nil {
			return nil, errOnlyUsers
		}
		out, err := r.Accounts.SignOut(ctx, api.Request(ctx), who.Session)
		if err != nil {
			return nil, err
		}
		api.SetWriteHeaders(ctx, out.Position, out.Replayed)
		return &struct {
			Cookie []http.Cookie `header:"Set-Cookie"`
			Body   message
		}{r.forget(refreshCookie), message{"Signed out"}}, nil
	})
	refresh := authOp("refresh", "POST", "/refresh", "Exchange a refresh token for new tokens")
	refresh.Errors = []int{http.StatusUnauthorized}
	api.Handle(r.API, proved(refresh), func(ctx context.Context, in *Refresh) (*refreshed, error) {
		token, kept := in.Kept, true
		if in.Body != nil && in.Body.RefreshToken != "" {
			token, kept = in.Body.RefreshToken, false
		}
		t, err := r.Accounts.Credentials.Sessions.Refresh(ctx, token)
		if kept && in.Kept != "" && errors.Is(err, credentials.ErrRefresh) { // the cookie never opens anything again
			for _, gone := range r.forget(refreshCookie) {
				in.header("Set-Cookie", gone.String())
			}
		}
		if err != nil {
			return nil, err
		}
		out := &refreshed{Body: tokens(t)}
		if kept {
			out.Cookie = r.keep(refreshCookie, t.Refresh, t.RefreshEnds.Sub(r.Now()))
		}
		return out, nil
	})
}

func tokens(t credentials.Tokens) Tokens {
	return Tokens{AccessToken: t.Access, RefreshToken: t.Refresh, TokenType: "bearer"}
}

func (r *Routes) passwords() {
	api.Handle(r.API, authOp("request-password-reset", "POST", "/password-reset/request",
		"Mail a token for a new password. The response does not reveal whether the address has an account."),
		func(ctx context.Context, in *struct {
			Body struct {
				Email string `json:"email" maxLength:"1000" doc:"Email address"`
			}
		}) (*api.Body[message], error) {
			if err := r.Accounts.ForgotPassword(ctx, in.Body.Email); err != nil {
				return nil, err
			}
			return api.Answer(message{"If the address has an account, a mail is on its way"}, nil)
		})
	confirm := proved(authOp("confirm-password-reset", "POST", "/password-reset/confirm", "Set a password with the mailed token"))
	confirm.Untried = false
	api.Handle(r.API, confirm,
		func(ctx context.Context, in *struct {
			Body struct {
				Token       string `json:"token"        maxLength:"500" doc:"Mailed token"`
				NewPassword string `json:"new_password" maxLength:"1000" doc:"New password"`
			}
		}) (*api.Body[message], error) {
			out, err := r.Accounts.ResetPassword(ctx, api.Request(ctx), in.Body.Token, in.Body.NewPassword)
			return api.Reply(ctx, out, err, say[user.State]("Password changed; sign in with the new one"))
		})
}

func (r *Routes) provider() {
	begin := authOp("sign-in-by-provider", "GET", "/idp", "Redirect to the identity provider's consent page")
	begin.Status = http.StatusFound
	api.Handle(r.API, begin, func(ctx context.Context, _ *struct{}) (*redirect, error) {
		if r.Provider == nil {
			return nil, errNoProvider
		}
		flow, err := r.Provider.Begin(ctx)
		var sealed string
		if err == nil {
			sealed, err = flow.Seal(r.FlowKey)
		}
		if err != nil {
			return r.failed(ctx, err, nil), nil
		}
		return r.redirect(flow.URL, r.keep(flowCookie, sealed, idp.FlowLifetime)), nil
	})
	finish := authOp("finish-sign-in-by-provider", "GET", "/idp/callback",
		"Complete a sign-in by the identity provider. The response redirects to the frontend.")
	finish.Status = http.StatusFound
	api.Handle(r.API, finish, func(ctx context.Context, in *struct {
		Code  string `query:"code" doc:"Code of the provider"`
		State string `query:"state" doc:"State of the sign-in"`
		Flow  string `cookie:"bahi_sign_in" doc:"Cookie of the sign-in's start"`
	}) (*redirect, error) {
		if r.Provider == nil {
			return nil, errNoProvider
		}
		gone := r.forget(flowCookie)
		request, _ := api.Sender(ctx)
		var (
			who idp.Identity
			s   accesscmd.SignedIn
		)
		flow, err := idp.OpenFlow(in.Flow, r.FlowKey, r.Now())
		if err == nil {
			who, err = r.Provider.Finish(ctx, flow, request.URL.Query())
		}
		if err == nil {
			s, err = r.Accounts.SignInByProvider(ctx, api.Request(ctx), accesscmd.Identity(who))
		}
		if err != nil {
			return r.failed(ctx, err, gone), nil
		}
		api.SetWriteHeaders(ctx, s.Position, false)
		cookies := slices.Concat(gone, r.keep(refreshCookie, s.Tokens.Refresh, s.Tokens.RefreshEnds.Sub(r.Now())))
		to := r.frontend(url.Values{"access_token": {s.Tokens.Access}})
		if r.Fragment {
			to = strings.Replace(to, "?", "#", 1)
		}
		return r.redirect(to, cookies), nil
	})
}

// failed redirects the browser with a code (G8 of the contract). The log has the error.
func (r *Routes) failed(ctx context.Context, err error, cookies []http.Cookie) *redirect {
	code, level := "server_error", slog.LevelError
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		code, level = codeOf(refused), slog.LevelInfo
	}
	r.Log.Log(ctx, level, "sign-in through the identity provider failed", "request_id", api.Request(ctx).RequestID, "code", code, "error", err)
	return r.redirect(r.frontend(url.Values{"error": {code}}), cookies)
}

// codeOf returns a refusal's code for clients of OAuth (RFC 6749, section 4.1.2.1).
func codeOf(refused *fault.Error) string {
	switch {
	case refused.Code != "":
		return refused.Code
	case refused.Kind == fault.Unavailable:
		return "temporarily_unavailable"
	case refused.Kind == fault.Malformed || refused.Kind == fault.Invalid:
		return "invalid_request"
	default:
		return "access_denied"
	}
}

func (r *Routes) frontend(query url.Values) string {
	return r.Frontend + "/auth/callback?" + query.Encode()
}

func (r *Routes) redirect(to string, cookies []http.Cookie) *redirect {
	return &redirect{Status: http.StatusFound, Location: to, Cookie: cookies, Referrer: "no-referrer", Cache: "no-store"}
}

// keep returns a cookie that scripts cannot read.
func (r *Routes) keep(name, value string, lasts time.Duration) []http.Cookie {
	return []http.Cookie{{
		Name: name, Value: value, Path: authPath, MaxAge: int(lasts / time.Second), HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	}}
}

func (r *Routes) forget(name string) []http.Cookie {
	return []http.Cookie{{Name: name, Path: authPath, MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}}
}
