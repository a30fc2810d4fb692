package idp

import (
	"regexp"

	"bahi/domain/fault"
)

// What goes wrong is one of these, with the cause behind it for the log. Their Code is what the browser is sent back with: a word of
// RFC 6749, 4.1.2.1, OpenID Connect Core 1.0, 3.1.2.6, or of the provider's own.
var (
	// ErrUnavailable: the provider did not answer, or with a failure of its own, or not as itself. Later it may.
	ErrUnavailable = &fault.Error{Kind: fault.Unavailable, Detail: "The identity provider is not available", Code: "temporarily_unavailable"}
	// ErrRefused: the provider said no. The Code of the error that is answered is the provider's: access_denied, invalid_grant …
	ErrRefused = &fault.Error{Kind: fault.Unauthorized, Detail: "The identity provider refused the sign-in", Code: "access_denied"}
	// ErrInvalidRequest: what the browser brought back is not the answer to what it was sent with, or came too late.
	ErrInvalidRequest = &fault.Error{Kind: fault.Invalid, Detail: "Sign-in request is invalid or has expired", Code: "invalid_request"}
	// ErrInvalidToken: the provider's answer does not prove who signed in.
	ErrInvalidToken = &fault.Error{Kind: fault.Unauthorized, Detail: "The identity provider's answer is not valid", Code: "invalid_token"}
)

// errorCode is what RFC 6749 lets an error code consist of, less the space, and no longer than any that means something.
var errorCode = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]{1,64}$`)

// refused is ErrRefused with the provider's code, or server_error if it has none that can be repeated.
func refused(code string) error {
	f := *ErrRefused
	f.Code = "server_error"
	if errorCode.MatchString(code) {
		f.Code = code
	}
	return &f
}
