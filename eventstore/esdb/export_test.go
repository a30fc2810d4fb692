package esdb

import "time"

// GiveUpAfter is how long subscriptions look for a server that they lost.
func (s *Store) GiveUpAfter(outage time.Duration) { s.outage = outage }
