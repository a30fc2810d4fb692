package messagingcmd

import (
	"sync"
	"time"
)

// ReplyWindows caches the ends of reply windows, in which a person may receive any message. A later message only extends a window, so a
// cached end is never too late. A second reply to a person does not wait for the tables.
type ReplyWindows struct {
	mu     sync.Mutex
	closes map[talkWith]time.Time
}

// talkWith is a person at a channel.
type talkWith struct{ channel, contact int64 }

// maxWindows bounds the cache.
const maxWindows = 100_000

// until returns the earliest end of a window, or the zero time if unknown.
func (w *ReplyWindows) until(channel, contact int64) time.Time {
	if w == nil {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closes[talkWith{channel, contact}]
}

// keep caches the end of a window. It clears the cache if there are too many.
func (w *ReplyWindows) keep(channel, contact int64, closes time.Time) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closes == nil || len(w.closes) >= maxWindows {
		w.closes = map[talkWith]time.Time{}
	}
	w.closes[talkWith{channel, contact}] = closes
}
