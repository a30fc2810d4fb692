package message

import "bahi/domain/event"

// FileStored records that the file of a message is kept: one that came in, or a picture that goes out.
type FileStored struct {
	Key         string `json:"key"` // of the blob
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
}

// Evolve notes it.
func (e FileStored) Evolve(s State) State {
	s.Ref, s.File = event.Personal{}, e.Key
	return s
}

// StoreFile notes that the file of a message is kept.
type StoreFile FileStored

// Decide passes over a message without a file, or with one that is kept.
func (c StoreFile) Decide(s State) ([]event.Event[State], error) {
	if s.Ref.IsZero() {
		return nil, nil
	}
	return []event.Event[State]{FileStored(c)}, nil
}
