package esdbserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"bahi/eventstore"
)

// refusal is the response to a refused call. Its trailers identify most kinds.
type refusal struct {
	code     codes.Code
	text     string
	trailers metadata.MD
}

func (r *refusal) Error() string { return r.text }

func refuse(code codes.Code, format string, args ...any) *refusal {
	return &refusal{code: code, text: legible(fmt.Sprintf(format, args...))}
}

// maxText limits the bytes of a message: clients treat a longer one as a broken connection.
const maxText = 1 << 10

// legible returns valid UTF-8 of a text that may quote a client's bytes. The protocol requires it.
func legible(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}

func denied(text string) *refusal {
	r := &refusal{code: codes.PermissionDenied, text: text}
	r.trailers = metadata.Pairs("exception", "access-denied")
	return r
}

func tooLarge() *refusal {
	r := refuse(codes.InvalidArgument, "an append has at most %d bytes and %d events", maxAppend, maxEvents)
	r.trailers = metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", strconv.Itoa(maxAppend))
	return r
}

// asRefusal returns the refusal of an error.
func asRefusal(err error) (*refusal, bool) {
	if errors.Is(err, eventstore.ErrClosed) { // clients retry codes that mean an outage
		return denied(legible(err.Error())), true
	}
	return errors.AsType[*refusal](err)
}

// failed returns the error that ends a failed call.
func (s *Server) failed(ctx context.Context, err error) error {
	r, refused := asRefusal(err)
	switch {
	case err == nil:
		return nil
	case refused:
		if r.trailers != nil {
			_ = grpc.SetTrailer(ctx, r.trailers) // fails only if the call has ended
		}
		return status.Error(r.code, r.text)
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case s.life.Err() != nil:
		return status.Error(codes.Unavailable, "the server stops")
	case errors.Is(err, eventstore.ErrBadEvent):
		return status.Error(codes.InvalidArgument, legible(err.Error()))
	case errors.Is(err, eventstore.ErrTailLost):
		return status.Error(codes.DataLoss, "the log lost its newest events, and other events will get their positions: discard what was "+
			"derived from the lost events")
	case errors.Is(err, eventstore.ErrInDoubt):
		return status.Error(codes.Unavailable, eventstore.ErrInDoubt.Error())
	default:
		s.Log.Warn("gateway call failed", "error", err)
		return status.Error(codes.Unavailable, "the event log cannot be reached")
	}
}

var (
	errWrongKey = refuse(codes.Unauthenticated, "no such API key")
	errGuesses  = refuse(codes.ResourceExhausted, "too many wrong API keys came from this address, try again in a minute")
)

// admit checks a call's credentials. It never refuses valid ones because of wrong ones from the same address.
func (s *Server) admit(ctx context.Context) error {
	err := s.check(ctx)
	if s.Guesses != nil && errors.Is(err, errWrongKey) && s.Guesses.Refused(addressOf(ctx)) {
		return errGuesses
	}
	return err
}

// addressOf returns the address of a call; the zero Addr if it has none.
func addressOf(ctx context.Context) netip.Addr {
	if from, is := peer.FromContext(ctx); is {
		if tcp, is := from.Addr.(*net.TCPAddr); is {
			return tcp.AddrPort().Addr()
		}
	}
	return netip.Addr{}
}

// check checks a call's credentials. The password is an API key; the user name is ignored.
func (s *Server) check(ctx context.Context) error {
	header := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(header) != 1 {
		return refuse(codes.Unauthenticated, "send credentials: any user name, and an API key with the permission operator as the password")
	}
	scheme, encoded, _ := strings.Cut(header[0], " ")
	pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	_, key, found := strings.Cut(string(pair), ":")
	if !strings.EqualFold(scheme, "Basic") || err != nil || !found {
		return refuse(codes.Unauthenticated, "the credentials are not in the form of RFC 7617 (Basic)")
	}
	switch err := s.Authenticate(ctx, key); {
	case errors.Is(err, ErrUnknownKey):
		return errWrongKey
	case errors.Is(err, ErrNotAllowed):
		return denied("this API key lacks the permission operator")
	case err != nil:
		return err
	default:
		letIn(ctx)
		return nil
	}
}

// hearOut reports whether a refused call may be read to its end. If so, the caller MUST call done.
func (s *Server) hearOut() (done func(), ok bool) {
	select {
	case s.turnedAway <- struct{}{}:
		return func() { <-s.turnedAway }, true
	default:
		return nil, false
	}
}

// admitWrite is admit for calls that change the log.
func (s *Server) admitWrite(ctx context.Context) error {
	if err := s.admit(ctx); err != nil {
		return err
	}
	if !s.Writable {
		return denied("this gateway is for reading; BAHI_GATEWAY_WRITE=true lets clients append")
	}
	return nil
}
