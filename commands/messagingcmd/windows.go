package messagingcmd

import (
	"sync"
	"time"
)

// ReplyWindows keeps until when people may be answered freely, as far as this process has looked it up. What came later only opens a window
// for longer: what is kept is never wrong, and a second answer to a person waits for no table.
type ReplyWindows struct {
	mu     sync.Mutex
	closes map[talkWith]time.Time
}

// talkWith is a person at a channel.
type talkWith struct{ channel, contact int64 }

// maxWindows bounds what is kept.
const maxWindows = 100_000

// until returns when a window closes at the earliest, the zero time for an unknown one.
func (w *ReplyWindows) until(channel, contact int64) time.Time {
	if w == nil {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closes[talkWith{channel, contact}]
}

// keep keeps when a window closes. Where there are too many, they are looked up again.
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
