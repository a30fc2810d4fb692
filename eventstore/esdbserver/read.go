package esdbserver

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"

	"bahi/domain/event"
	"bahi/eventstore"
)

// query is the read that a client requests.
type query struct {
	stream    string // "": the whole log
	direction eventstore.Direction
	revision  int64          // start in a stream, inclusive
	position  event.Position // start in the log: inclusive forwards, exclusive backwards and in a subscription
	atEnd     bool           // start at the end, whatever the direction
	count     uint64
	follow    bool
	filter    *filter // nil: none
	textIDs   bool
}

// reader is a call that returns events.
type reader struct {
	streams.Streams_ReadServer

	textIDs bool
}

func (r *reader) sendEvent(e event.Stored) error { return r.Send(eventResponse(e, r.textIDs)) }

// Read handles all reads and subscriptions.
func (s *streamsService) Read(request *streams.ReadReq, answers streams.Streams_ReadServer) error {
	err := s.admit(answers.Context())
	var q query
	if err == nil {
		q, err = parse(request.GetOptions())
	}
	call := &reader{answers, q.textIDs}
	switch {
	case err != nil:
	case q.follow && q.stream == "":
		err = s.followAll(call, q)
	case q.follow:
		err = s.followStream(call, q)
	case q.stream == "":
		err = s.readAll(call, q)
	default:
		err = s.readStream(call, q)
	}
	return s.failed(call.Context(), err)
}

func parse(o *streams.ReadReq_Options) (q query, err error) {
	q = query{direction: o.GetReadDirection() == streams.ReadReq_Options_Backwards}
	_, q.textIDs = o.GetUuidOption().GetContent().(*streams.ReadReq_Options_UUIDOption_String_)
	switch count := o.GetCountOption().(type) {
	case *streams.ReadReq_Options_Count:
		q.count = count.Count
	case *streams.ReadReq_Options_Subscription:
		q.follow = true
	default:
		return q, refuse(codes.InvalidArgument, "a read has a count, or is a subscription")
	}
	if q.follow && q.direction == eventstore.Backwards {
		return q, refuse(codes.InvalidArgument, "a subscription goes forwards")
	}
	switch what := o.GetStreamOption().(type) {
	case *streams.ReadReq_Options_Stream:
		err = q.fromStream(what.Stream)
	case *streams.ReadReq_Options_All:
		q.fromAll(what.All)
	default:
		return q, refuse(codes.InvalidArgument, "a read is of a stream or of all")
	}
	if f := o.GetFilter(); err == nil && f != nil {
		if q.stream != "" {
			return q, refuse(codes.InvalidArgument, "only a read of all can be filtered")
		}
		q.filter, err = newFilter(f)
	}
	return q, err
}

func (q *query) fromStream(o *streams.ReadReq_Options_StreamOptions) error {
	if q.stream = string(o.GetStreamIdentifier().GetStreamName()); q.stream == "" {
		return refuse(codes.InvalidArgument, "a stream has a name")
	}
	switch from := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Revision:
		q.revision = int64(min(from.Revision, math.MaxInt64))
		if q.follow { // exclusive
			q.revision = min(q.revision, math.MaxInt64-1) + 1
		}
	case *streams.ReadReq_Options_StreamOptions_End:
		q.revision, q.atEnd = eventstore.LastRevision, true
	}
	return nil
}

func (q *query) fromAll(o *streams.ReadReq_Options_AllOptions) {
	switch from := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Position:
		q.position = event.Position(from.Position.GetCommitPosition())
	case *streams.ReadReq_Options_AllOptions_End:
		q.position, q.atEnd = eventstore.End, true
	}
}

func (s *streamsService) readStream(call *reader, q query) error {
	var found uint64
	if q.count > 0 && (!q.atEnd || q.direction == eventstore.Backwards) {
		for e, err := range s.Store.ReadStream(call.Context(), q.stream, q.revision, q.direction) {
			if err == nil {
				err = call.sendEvent(e)
			}
			if err != nil {
				return err
			}
			if found++; found == q.count {
				break
			}
		}
	}
	if found > 0 {
		return nil
	}
	last, err := s.lastRevision(call.Context(), q.stream)
	if err != nil || last >= 0 {
		return err
	}
	return call.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
		StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: identifier(q.stream)},
	}})
}

// lastRevision returns -1 if the stream does not exist.
func (s *Server) lastRevision(ctx context.Context, stream string) (int64, error) {
	for e, err := range s.Store.ReadStream(ctx, stream, eventstore.LastRevision, eventstore.Backwards) {
		return e.Revision, err
	}
	return -1, nil
}

func (s *streamsService) readAll(call *reader, q query) error {
	var found uint64
	for e, err := range s.all(call.Context(), q) {
		if err != nil {
			return err
		}
		if found == q.count {
			return nil
		}
		if !q.filter.takes(e) {
			continue
		}
		if err := call.sendEvent(e); err != nil {
			return err
		}
		found++
	}
	return nil
}

func (s *streamsService) all(ctx context.Context, q query) iter.Seq2[event.Stored, error] {
	from := q.position
	if q.direction == eventstore.Forwards && from > 0 && !q.atEnd {
		from-- // the store's reads start after a position
	}
	return s.Store.ReadAll(ctx, from, q.direction)
}

var errStops = errors.New("the server stops")
