package main

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// usual is the duration of a piece of work, beside the tests, on the machine that slow.txt is for: two cores, and nothing but the tests.
const usual = 100 * time.Millisecond

const (
	pieceSize    = 1 << 20
	pieces       = 40              // of that size in one measurement
	paceInterval = 3 * time.Second // between two measurements, which take a hundredth of the machine
	minLook      = 5               // minimum number of measurements
)

// pacing measures the speed of the machine while the tests run, with all other load.
type pacing struct {
	mu    sync.Mutex
	times []time.Duration
}

// run measures until the program ends.
func (p *pacing) run() {
	data := make([]byte, pieceSize)
	for range time.Tick(paceInterval) {
		began := time.Now()
		for range pieces {
			sum := sha256.Sum256(data)
			copy(data, sum[:])
		}
		p.mu.Lock()
		p.times = append(p.times, time.Since(began))
		p.mu.Unlock()
	}
}

// slower returns how many times as long as usual the work took; 0 after too few measurements.
func (p *pacing) slower() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.times) < minLook {
		return 0
	}
	times := slices.Sorted(slices.Values(p.times))
	return float64(times[len(times)/2]) / float64(usual)
}
