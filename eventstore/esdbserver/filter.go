package esdbserver

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"

	"bahi/domain/event"
)

const (
	// These limits bound the work for each event of the log.
	maxPattern  = 1 << 10
	maxPrefixes = 256
	maxPrefix   = 512 // the longest name of a stream or type

	// defaultWindow is EventStoreDB's default.
	defaultWindow = 32
)

// filter selects the events for a client.
type filter struct {
	byType   bool // match the type, not the stream's name
	prefixes []string
	pattern  *regexp.Regexp

	every uint64 // the client gets a checkpoint after that many events, matching or not
}

func newFilter(o *streams.ReadReq_Options_FilterOptions) (*filter, error) {
	f := &filter{every: uint64(cmp.Or(o.GetMax(), defaultWindow)) * uint64(max(o.GetCheckpointIntervalMultiplier(), 1))}
	expression := o.GetStreamIdentifier()
	if e := o.GetEventType(); e != nil {
		expression, f.byType = e, true
	}
	f.prefixes = expression.GetPrefix()
	text := expression.GetRegex()
	switch {
	case text == "" && len(f.prefixes) == 0:
		return nil, refuse(codes.InvalidArgument, "a filter has prefixes or a regular expression")
	case slices.ContainsFunc(f.prefixes, func(p string) bool { return len(p) > maxPrefix }):
		return nil, refuse(codes.InvalidArgument, "a prefix has at most %d bytes", maxPrefix)
	case len(text) > maxPattern || len(f.prefixes) > maxPrefixes:
		return nil, refuse(codes.InvalidArgument, "a filter has at most %d prefixes, or a regular expression of %d bytes", maxPrefixes,
			maxPattern)
	case text == "":
		return f, nil
	}
	var err error
	if f.pattern, err = regexp.Compile(text); err != nil {
		return nil, refuse(codes.InvalidArgument, "the regular expression is invalid in RE2 syntax: %s", err)
	}
	return f, nil
}

func (f *filter) takes(e event.Stored) bool {
	if f == nil {
		return true
	}
	text := e.Stream
	if f.byType {
		text = e.Type
	}
	for _, prefix := range f.prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return f.pattern != nil && f.pattern.MatchString(text)
}
