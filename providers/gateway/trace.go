package gateway

import (
	"context"
	"net/http/httptrace"
)

// traced returns a context that records whether a connection was made: the aggregator may then have read the request.
func traced(ctx context.Context, connected *bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { *connected = true }})
}
