package esdbtest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errNoPlace and errNoStart are the answers to reads and subscriptions from a position at which no event begins.
var (
	errNoPlace = status.Error(codes.Unknown, "Unexpected ReadAllResult: Error")
	errNoStart = status.Error(codes.Unknown, "Exception was thrown by handler.")
)

// Read serves reads and subscriptions.
func (s streamsService) Read(request *streams.ReadReq, call streams.Streams_ReadServer) error {
	o := request.GetOptions()
	if _, is := o.GetCountOption().(*streams.ReadReq_Options_Subscription); is {
		s.Counts.Subscriptions.Add(1)
		return s.follow(o, call)
	}
	s.Counts.Reads.Add(1)
	backwards := o.GetReadDirection() == streams.ReadReq_Options_Backwards
	var events []recorded
	if of := o.GetStream(); of != nil {
		all, exists := s.cluster.log.stream(string(of.GetStreamIdentifier().GetStreamName()))
		if !exists {
			return call.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
				StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: of.GetStreamIdentifier()},
			}})
		}
		events = ofStream(all, of, backwards)
	} else {
		all, end, _ := s.cluster.log.all()
		from, err := ofAll(all, end, o.GetAll(), backwards)
		if err != nil {
			s.Counts.Refused.Add(1)
			return err
		}
		if backwards {
			events = all[:from]
		} else {
			events = all[from:]
		}
	}
	count := min(uint64(len(events)), o.GetCount())
	if _, fromEnd := o.GetAll().GetAllOption().(*streams.ReadReq_Options_AllOptions_End); fromEnd && backwards && o.GetCount() == 1 {
		s.Counts.Looks.Add(1)
	}
	for i := range count {
		e := events[i]
		if backwards {
			e = events[uint64(len(events))-1-i]
		}
		s.Counts.Events.Add(1)
		if err := send(call, e); err != nil {
			return err
		}
	}
	return nil
}

// ofStream returns a stream's events from a revision on, or up to it.
func ofStream(all []recorded, o *streams.ReadReq_Options_StreamOptions, backwards bool) []recorded {
	switch from := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Revision:
		if backwards {
			return all[:min(from.Revision, uint64(len(all)-1))+1]
		}
		return all[min(from.Revision, uint64(len(all))):]
	case *streams.ReadReq_Options_StreamOptions_End:
		if !backwards {
			return nil
		}
		return all
	}
	if backwards {
		return all[:1]
	}
	return all
}

// ofAll returns the index at which a read of the log begins, forwards, or ends, backwards.
func ofAll(all []recorded, end uint64, o *streams.ReadReq_Options_AllOptions, backwards bool) (int, error) {
	switch from := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Position:
		place := from.Position.GetCommitPosition()
		i, is := at(all, place)
		switch {
		case is:
			return i, nil
		case place >= end && !backwards:
			return len(all), nil
		}
		return 0, errNoPlace
	case *streams.ReadReq_Options_AllOptions_End:
		return len(all), nil
	}
	return 0, nil
}

func send(call streams.Streams_ReadServer, e recorded) error {
	return call.Send(&streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id: wireID(e.id), StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(e.stream)}, StreamRevision: e.revision,
			PreparePosition: e.position, CommitPosition: e.position, CustomMetadata: e.meta, Data: e.data,
			Metadata: map[string]string{"type": e.typ, "content-type": e.contentType, "created": strconv.FormatInt(e.at.UnixNano()/100, 10)},
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: e.position},
	}}})
}

// follow serves a subscription. It sends CaughtUp at the end of the log, and with a filter a checkpoint after each window of events.
func (s streamsService) follow(o *streams.ReadReq_Options, call streams.Streams_ReadServer) error {
	if before := s.before.Load(); before != nil {
		_, all := o.GetAll().GetAllOption().(*streams.ReadReq_Options_AllOptions_Start)
		if err := (*before)(all); err != nil {
			return err
		}
	}
	all, end, _ := s.cluster.log.all()
	next := 0
	wanted := func(recorded) bool { return true }
	if of := o.GetStream(); of != nil {
		name, least := string(of.GetStreamIdentifier().GetStreamName()), int64(-1)
		switch from := of.GetRevisionOption().(type) {
		case *streams.ReadReq_Options_StreamOptions_Revision:
			least = int64(from.Revision)
		case *streams.ReadReq_Options_StreamOptions_End:
			next = len(all)
		}
		wanted = func(e recorded) bool { return e.stream == name && int64(e.revision) > least }
	} else {
		var err error
		if next, err = ofAll(all, end, o.GetAll(), false); err != nil {
			s.Counts.Refused.Add(1)
			return errNoStart
		}
		if _, exclusive := o.GetAll().GetAllOption().(*streams.ReadReq_Options_AllOptions_Position); exclusive && next < len(all) {
			next++
		}
	}
	window := 0
	if f := o.GetFilter(); f != nil {
		window = int(max(f.GetMax(), 1) * max(f.GetCheckpointIntervalMultiplier(), 1))
		passes, err := filtered(f)
		if err != nil {
			return err
		}
		wanted = passes
	}
	confirmation := &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()}
	if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: confirmation}}); err != nil {
		return err
	}
	for live, looked := false, 0; ; {
		all, _, changed := s.cluster.log.all()
		for ; next < len(all); next++ {
			if e := all[next]; wanted(e) {
				if err := send(call, e); err != nil {
					return err
				}
			}
			if looked++; window > 0 && looked%window == 0 {
				place := all[next].position
				if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
					Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: place, PreparePosition: place},
				}}); err != nil {
					return err
				}
			}
		}
		if !live {
			live = true
			if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-call.Context().Done():
			return call.Context().Err()
		case <-s.life.Done():
			return status.Error(codes.Unavailable, "the node stops")
		}
	}
}

// filtered returns which events pass a filter.
func filtered(f *streams.ReadReq_Options_FilterOptions) (func(recorded) bool, error) {
	expression, byType := f.GetStreamIdentifier(), false
	if e := f.GetEventType(); e != nil {
		expression, byType = e, true
	}
	pattern, err := regexp.Compile(expression.GetRegex())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	prefixes := expression.GetPrefix()
	return func(e recorded) bool {
		text := e.stream
		if byType {
			text = e.typ
		}
		return len(prefixes) == 0 && pattern.MatchString(text) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
	}, nil
}
