package credentials

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxSightings limits the memory for sessions in use.
const maxSightings = 1 << 16

// sightings has the last lookup of each session, with its end: the zero time for ended sessions.
type sightings struct {
	mu      sync.Mutex
	seen    *simplelru.LRU[uuid.UUID, sighting]
	forgets int // number of removals; discards a concurrent read
}

type sighting struct{ at, ends time.Time }

func newSightings() (*sightings, error) {
	seen, err := simplelru.NewLRU[uuid.UUID, sighting](maxSightings, nil)
	return &sightings{seen: seen}, err
}

// at returns the end of the session. It returns false if the last lookup is too old.
func (s *sightings) at(session uuid.UUID, now time.Time) (ends time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.seen.Get(session)
	return known.ends, ok && fresh(known.at, now)
}

func (s *sightings) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forgets
}

// keep stores the result of a read at a time. It drops the result if a removal has changed forgets since.
func (s *sightings) keep(session uuid.UUID, at, ends time.Time, forgets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgets == forgets {
		s.seen.Add(session, sighting{at, ends})
	}
}

func (s *sightings) forget(session uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Remove(session)
	s.forgets++
}

func (s *sightings) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Purge()
	s.forgets++
}
