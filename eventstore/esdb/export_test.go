package esdb

import "time"

// SetOutage sets how long subscriptions look for a lost server.
func (s *Store) SetOutage(outage time.Duration) { s.outage = outage }
