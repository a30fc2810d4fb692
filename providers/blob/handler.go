package blob

import (
	"errors"
	"log/slog"
	"net/http"
)

// Handler serves the links of a store that is files, under whatever path [Files].BaseURL has. It answers 403 for a link that
// expired, was altered or never signed, 404 for a blob that is gone, 405 for all but GET and HEAD. Of any other
// store all links lead elsewhere, and it answers 404. Trouble with the disk is logged to log, by key.
func (s *Store) Handler(log *slog.Logger) http.Handler {
	if s.signer == nil {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
			return
		}
		key, err := s.signer.KeyFromURL(r.Context(), r.URL)
		if err != nil || checkKey(key) != nil || r.URL.Query().Get("method") != http.MethodGet { // the signer signs the method and does not look at it
			http.Error(w, "Link expired or altered", http.StatusForbidden)
			return
		}
		blob, err := s.open(r.Context(), key)
		if errors.Is(err, ErrNotFound) {
			http.NotFound(w, r)
			return
		}
		if err != nil {
			log.ErrorContext(r.Context(), "a blob cannot be served", "key", key, "error", err)
			http.Error(w, "Internal server error", http.StatusInternalServerError)
			return
		}
		defer blob.Close() //nolint:errcheck // it was only read
		header := w.Header()
		header.Set("Content-Type", blob.ContentType())
		header.Set("Content-Disposition", disposition(key, blob.ContentType()))
		header.Set("Cache-Control", cacheControl)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; sandbox") // whatever was uploaded runs nothing in our name
		http.ServeContent(w, r, "", blob.ModTime(), blob)
	})
}
