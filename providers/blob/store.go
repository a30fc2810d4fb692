// Package blob keeps files that people uploaded, and hands out links to them that expire.
//
// The library is gocloud.dev/blob. Two of its drivers are in the binary: files, for a deployment on one
// machine, and S3, whose wire format most object stores speak. Another one (gcsblob, azureblob) is an
// import here and its scheme in Open; each brings its SDK into the binary, so they wait for who asks.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	gcblob "gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
)

var (
	// ErrNotFound says that nothing is kept under the key.
	ErrNotFound = errors.New("no such blob")
	// ErrKey says that a key or prefix is malformed. A key has 1 to 512 of A-Z a-z 0-9 . _ - /, each part between slashes
	// 1 to 200 and no dot first; it does not end in .attrs, where files keep their content type.
	ErrKey = errors.New("malformed blob key")
	// ErrTTL says that a link would live for less than a second or for more than seven days, which is S3's limit (Signature Version 4).
	ErrTTL = errors.New("a link to a blob lives for a second to seven days")
)

const (
	longestKey  = 512
	longestTTL  = 7 * 24 * time.Hour
	shortestKey = 32 // bytes of an HMAC-SHA256 key, as long as the hash (RFC 2104, section 3)
)

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,199})*$`)

// Files says where blobs are while BLOB_URL is empty, and what their links look like.
type Files struct {
	Folder  string // made if need be, 0700; one process's
	BaseURL string // where Handler is reached from outside: https://bahi.example.com/blobs/
	Key     []byte // signs the links; 32 bytes or more. All links end with it.
}

// Store keeps blobs. It may be used by many at once.
type Store struct {
	bucket *gcblob.Bucket
	signer fileblob.URLSigner // nil unless it is files
	// replacing is for files alone: their driver overwrites a content type where it stands (attrs.go, setAttrs), and who opens the blob just then fails.
	replacing sync.RWMutex
}

// Open opens BLOB_URL, or files if that is empty. Nothing is connected yet.
//
//	s3://bucket?region=ap-south-1
//	s3://bucket?region=any&endpoint=https://s3.example.com&use_path_style=true
//
// Further parameters are prefix=folder/, which all keys then begin with, and those of gocloud.dev's s3blob.URLOpener and aws.V2ConfigFromURLParams. Credentials
// come from where S3's SDK finds them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, its files, or the machine's role.
func Open(ctx context.Context, rawURL string, files Files) (*Store, error) {
	if rawURL == "" {
		return openFiles(files)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("BLOB_URL cannot be read; expected s3://bucket?region=…")
	}
	if u.Scheme != s3blob.Scheme {
		return nil, fmt.Errorf("BLOB_URL: scheme %q is none of: s3; leave it empty for files", u.Scheme)
	}
	if u.User != nil { // the driver would pass over it, and quote it in errors
		return nil, errors.New("BLOB_URL holds credentials; they belong into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)")
	}
	bucket, err := gcblob.OpenBucket(ctx, rawURL)
	if err != nil {
		return nil, fmt.Errorf("BLOB_URL: %w", err)
	}
	return &Store{bucket: bucket}, nil
}

func openFiles(files Files) (*Store, error) {
	if len(files.Key) < shortestKey {
		return nil, fmt.Errorf("a key of %d bytes signs no links to blobs; it takes %d", len(files.Key), shortestKey)
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
		NoTempDir: true, // elsewhere others could read what is being written; what a crash leaves over is a blob to List and Delete
	})
	if err != nil {
		return nil, fmt.Errorf("open the blobs' folder: %w", err)
	}
	return &Store{bucket: bucket, signer: signer}, nil
}

// Close ends the store's work. No link ends with it.
func (s *Store) Close() error { return s.bucket.Close() }

// Put keeps data under key, in place of what was there. A Get sees the old or the new, never a mixture. contentType is what links will answer it as. Files
// are left to the system to bring to the disk: a power cut may lose the last ones. It fails with [ErrKey].
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
		return fmt.Errorf("put blob %s: %w", key, err)
	}
	return nil
}

// Get answers what is kept under key. It fails with [ErrNotFound] and [ErrKey].
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
		return nil, fmt.Errorf("get blob %s: %w", key, err)
	}
	return r, nil
}

// Delete removes what is kept under key. That nothing is there is no error. It fails with [ErrKey].
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if s.signer != nil {
		s.replacing.Lock()
		defer s.replacing.Unlock()
	}
	if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete blob %s: %w", key, err)
	}
	return nil
}

// List answers the keys that begin with prefix, which is empty or a key, with or without a slash behind it, in their order by bytes. It fails with [ErrKey].
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
			return nil, fmt.Errorf("list blobs: %w", err)
		}
		keys = append(keys, entry.Key)
	}
}

// URL answers a link that anybody may GET for the time of ttl, which counts in seconds, whether or not something is kept under the key. It fails
// with [ErrKey] and [ErrTTL].
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

func checkKey(key string) error {
	if len(key) > longestKey || strings.HasSuffix(key, ".attrs") || !keyForm.MatchString(key) {
		return ErrKey
	}
	return nil
}

const cacheControl = "private"

// harmless are the types that a browser shows in its window without running anything.
var harmless = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// disposition has a browser show what is harmless and save all else.
func disposition(key, contentType string) string {
	how := "attachment"
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && slices.Contains(harmless, kind) {
		how = "inline"
	}
	return mime.FormatMediaType(how, map[string]string{"filename": path.Base(key)})
}
