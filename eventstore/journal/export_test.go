package journal

import "time"

// Hasten shortens a journal's durations.
func (j *Journal) Hasten() {
	j.timing = timing{answer: 20 * time.Millisecond, reach: 50 * time.Millisecond, doubt: 400 * time.Millisecond, pause: time.Millisecond}
}
