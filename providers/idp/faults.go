package idp

import (
	"regexp"

	"bahi/domain/fault"
)

// Each error of this package is one of these and wraps its cause for the log. The browser gets Code: an error code of RFC 6749, 4.1.2.1, of
// OpenID Connect Core 1.0, 3.1.2.6, or of the provider.
var (
	// ErrUnavailable: the provider did not respond, failed, or is not authentic. Another try may succeed.
	ErrUnavailable = &fault.Error{Kind: fault.Unavailable, Detail: "The identity provider is not available", Code: "temporarily_unavailable"}
	// ErrRefused: the provider refused. Code is the provider's: access_denied, invalid_grant …
	ErrRefused = &fault.Error{Kind: fault.Unauthorized, Detail: "The identity provider refused the sign-in", Code: "access_denied"}
	// ErrInvalidRequest: the browser's query does not belong to its flow, or arrived too late.
	ErrInvalidRequest = &fault.Error{Kind: fault.Invalid, Detail: "Sign-in request is invalid or has expired", Code: "invalid_request"}
	// ErrInvalidToken: the provider's response does not prove the user's identity.
	ErrInvalidToken = &fault.Error{Kind: fault.Unauthorized, Detail: "The identity provider's response is not valid", Code: "invalid_token"}
)

// errorCode matches the characters of an error code (RFC 6749), without the space, up to a sensible length.
var errorCode = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]{1,64}$`)

// refused returns ErrRefused with the provider's code, or server_error if the code is malformed.
func refused(code string) error {
	f := *ErrRefused
	f.Code = "server_error"
	if errorCode.MatchString(code) {
		f.Code = code
	}
	return &f
}
