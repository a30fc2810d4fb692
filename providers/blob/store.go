// Package blob stores uploaded files, and signs links to them that expire.
//
// The library is gocloud.dev/blob. Two of its drivers are in the binary: files, for a deployment on one machine, and S3, whose wire format
// most object stores support. To add another (gcsblob, azureblob), import it here and add its scheme to Open. Each adds its SDK to the
// binary.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	gcblob "gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
)

var (
	// ErrNotFound is the error of a key without a blob: a [fs.ErrNotExist].
	ErrNotFound = fmt.Errorf("no such blob: %w", fs.ErrNotExist)
	// ErrKey is the error of a malformed key or prefix. A key has 1 to 512 of A-Z a-z 0-9 . _ - /. Each part between slashes has 1 to 200
	// and does not begin with a dot. A key does not end in .attrs, the suffix of the files with content types.
	ErrKey = errors.New("malformed blob key")
	// ErrUnavailable reports that S3 cannot serve now (it responds 5xx, or 429 to too many requests). A retry may succeed. A failed
	// connection is an error of package net.
	ErrUnavailable = errors.New("the blob store is unavailable")
	// ErrTTL is the error of a link for less than a second or more than seven days, the limit of S3 (Signature Version 4).
	ErrTTL = errors.New("a link to a blob is valid for one second to seven days")
)

const (
	longestKey  = 512
	longestTTL  = 7 * 24 * time.Hour
	shortestKey = 32 // bytes of an HMAC-SHA256 key, as long as the hash (RFC 2104, section 3)
)

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,199})*$`)

// Files configures the store that is used while BLOB_URL is empty.
type Files struct {
	Folder  string // created if missing, 0700; processes must not share it
	BaseURL string // public address of Handler, such as https://bahi.example.com/blobs/
	Key     []byte // signs the links; 32 bytes or more. A new key invalidates all links.
}

// Store keeps blobs. Goroutines may share it.
type Store struct {
	bucket *gcblob.Bucket
	signer fileblob.URLSigner // nil for S3
	// replacing is for files only: their driver overwrites the content type in place (attrs.go, setAttrs), and opening the blob meanwhile
	// fails.
	replacing sync.RWMutex
}

// Open opens BLOB_URL, or files if that is empty. It does not connect.
//
//	s3://bucket?region=ap-south-1
//	s3://bucket?region=any&endpoint=https://s3.example.com&use_path_style=true
//
// Further parameters are prefix=folder/, the beginning of all keys, and those of gocloud.dev's s3blob.URLOpener and
// aws.V2ConfigFromURLParams. S3's SDK finds the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, its files, or
// the machine's role.
func Open(ctx context.Context, rawURL string, files Files) (*Store, error) {
	if rawURL == "" {
		return openFiles(files)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("BLOB_URL is invalid; expected s3://bucket?region=…")
	}
	if u.Scheme != s3blob.Scheme {
		return nil, fmt.Errorf("BLOB_URL: scheme %q is none of: s3; leave it empty for files", u.Scheme)
	}
	if u.User != nil { // the driver would ignore it, and quote it in errors
		return nil, errors.New("BLOB_URL has credentials; put these into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)")
	}
	bucket, err := gcblob.OpenBucket(ctx, rawURL)
	if err != nil {
		return nil, fmt.Errorf("BLOB_URL: %w", err)
	}
	if client := (*s3.Client)(nil); bucket.As(&client) && client.Options().Region == "" {
		return nil, errors.Join(errors.New("BLOB_URL: the region is missing: s3://bucket?region=…"), bucket.Close())
	}
	return &Store{bucket: bucket}, nil
}

func openFiles(files Files) (*Store, error) {
	if len(files.Key) < shortestKey {
		return nil, fmt.Errorf("the key for links to blobs has %d bytes, not %d", len(files.Key), shortestKey)
	}
	base, err := url.Parse(files.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("address of links to blobs: %w", err)
	}
	if !base.IsAbs() || base.Host == "" {
		return nil, fmt.Errorf("address of links to blobs: %q has no host", files.BaseURL)
	}
	signer := fileblob.NewURLSignerHMAC(base, files.Key)
	bucket, err := fileblob.OpenBucket(files.Folder, &fileblob.Options{
		URLSigner: signer, CreateDir: true, DirFileMode: 0o700,
		NoTempDir: true, // others may read the system's folder; List and Delete see the file of a crashed write
	})
	if err != nil {
		return nil, fmt.Errorf("open the blobs' folder: %w", err)
	}
	return &Store{bucket: bucket, signer: signer}, nil
}

// Close releases the store. Links stay valid.
func (s *Store) Close() error { return s.bucket.Close() }

// Put stores data under key and replaces an older blob. A concurrent Get returns the old or the new one, never a mixture. Links serve it as
// contentType. Files are not synced: a power cut may lose the newest. Put fails with [ErrKey].
func (s *Store) Put(ctx context.Context, key, contentType string, data []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if _, _, err := mime.ParseMediaType(contentType); err != nil { // the library would guess one for ""
		return fmt.Errorf("put blob %s: content type %q: %w", key, contentType, err)
	}
	if s.signer != nil {
		s.replacing.Lock()
		defer s.replacing.Unlock()
	}
	err := s.bucket.WriteAll(ctx, key, data, &gcblob.WriterOptions{
		ContentType: contentType, ContentDisposition: disposition(key, contentType), CacheControl: cacheControl,
	})
	if err != nil {
		return fmt.Errorf("put blob %s: %w", key, mayPass(err))
	}
	return nil
}

// Get returns the blob under key. It fails with [ErrNotFound] or [ErrKey].
func (s *Store) Get(ctx context.Context, key string) (data []byte, contentType string, err error) {
	r, err := s.open(ctx, key)
	if err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, "", fmt.Errorf("get blob %s: %w", key, err)
	}
	return data, r.ContentType(), nil
}

func (s *Store) open(ctx context.Context, key string) (*gcblob.Reader, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	s.replacing.RLock()
	r, err := s.bucket.NewReader(ctx, key, nil)
	s.replacing.RUnlock()
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", key, mayPass(err))
	}
	return r, nil
}

// Delete removes the blob under key, if there is one. It fails with [ErrKey].
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if s.signer != nil {
		s.replacing.Lock()
		defer s.replacing.Unlock()
	}
	if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete blob %s: %w", key, mayPass(err))
	}
	return nil
}

// List returns the keys that begin with prefix, ordered by bytes. A prefix is empty or a key, with or without a slash behind it. List fails
// with [ErrKey].
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	if prefix != "" {
		if err := checkKey(strings.TrimSuffix(prefix, "/")); err != nil {
			return nil, err
		}
	}
	var keys []string
	for entries := s.bucket.List(&gcblob.ListOptions{Prefix: prefix}); ; {
		entry, err := entries.Next(ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(keys)
			return keys, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list blobs: %w", mayPass(err))
		}
		keys = append(keys, entry.Key)
	}
}

// URL returns a public link that is valid for ttl, in whole seconds. It does not check that the blob exists. URL fails with [ErrKey] or
// [ErrTTL].
func (s *Store) URL(ctx context.Context, key string, ttl time.Duration) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if ttl < time.Second || ttl > longestTTL {
		return "", ErrTTL
	}
	link, err := s.bucket.SignedURL(ctx, key, &gcblob.SignedURLOptions{Method: http.MethodGet, Expiry: ttl})
	if err != nil {
		return "", fmt.Errorf("sign a link to blob %s: %w", key, err)
	}
	return link, nil
}

// mayPass adds [ErrUnavailable] to the error of a response after which a retry may succeed.
func mayPass(err error) error {
	type answer interface {
		error
		HTTPStatusCode() int // the SDK's transport/http.ResponseError has it
	}
	if said, ok := errors.AsType[answer](err); ok && (said.HTTPStatusCode() >= 500 || said.HTTPStatusCode() == http.StatusTooManyRequests) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func checkKey(key string) error {
	if len(key) > longestKey || strings.HasSuffix(key, ".attrs") || !keyForm.MatchString(key) {
		return ErrKey
	}
	return nil
}

const cacheControl = "private"

// harmless lists the types that a browser shows without running scripts.
var harmless = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// disposition returns the Content-Disposition: browsers show a harmless type and save all others.
func disposition(key, contentType string) string {
	how := "attachment"
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && slices.Contains(harmless, kind) {
		how = "inline"
	}
	return mime.FormatMediaType(how, map[string]string{"filename": path.Base(key)})
}
