package blob

import (
	"errors"
	"log/slog"
	"net/http"
)

// Handler serves the links of a store of files, below the path of [Files].BaseURL. It responds with 403 to a link that expired, was altered
// or never signed, 404 if the blob is gone, and 405 unless the method is GET or HEAD. For S3 it always responds with 404, because those
// links lead to S3. It logs errors of the disk with the blob's key.
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
		// the signer does not check the method that it signed
		if err != nil || checkKey(key) != nil || r.URL.Query().Get("method") != http.MethodGet {
			http.Error(w, "Link expired or altered", http.StatusForbidden)
			return
		}
		blob, err := s.open(r.Context(), key)
		if errors.Is(err, ErrNotFound) {
			http.NotFound(w, r)
			return
		}
		if err != nil {
			log.ErrorContext(r.Context(), "reading a blob failed", "key", key, "error", err)
			http.Error(w, "Internal server error", http.StatusInternalServerError)
			return
		}
		defer blob.Close() //nolint:errcheck // it was only read
		header := w.Header()
		header.Set("Content-Type", blob.ContentType())
		header.Set("Content-Disposition", disposition(key, blob.ContentType()))
		header.Set("Cache-Control", cacheControl)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; sandbox") // an uploaded page runs no script in our name
		http.ServeContent(w, r, "", blob.ModTime(), blob)
	})
}
