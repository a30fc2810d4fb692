package message

import "bahi/domain/event"

// FileStored records that the file of a message is stored: an incoming file or an outgoing picture.
type FileStored struct {
	Key         string `json:"key"` // key of the blob
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
}

// Evolve sets the key.
func (e FileStored) Evolve(s State) State {
	s.Ref, s.File = event.Personal{}, e.Key
	return s
}

// StoreFile records that the file of a message is stored.
type StoreFile FileStored

// Decide returns no events for a message without a file, or with a stored file.
func (c StoreFile) Decide(s State) ([]event.Event[State], error) {
	if s.Ref.IsZero() {
		return nil, nil
	}
	return []event.Event[State]{FileStored(c)}, nil
}
