package readmodels

// Keep bounds what a reader keeps, in bytes.
func Keep(r *Reader, most int) { r.kept.most = most }

// KeptBytes returns how many bytes it keeps.
func KeptBytes(r *Reader) int {
	r.kept.mu.Lock()
	defer r.kept.mu.Unlock()
	return r.kept.bytes
}
