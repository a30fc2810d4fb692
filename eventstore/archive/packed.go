package archive

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// OpenPacked is [Open] for an archive's folder at any depth of a zip or tar file. It unpacks one segment at a time.
func OpenPacked(file io.ReaderAt, size int64) (*Archive, error) {
	magic := make([]byte, 2)
	if _, err := file.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	packed := openTar
	switch string(magic) {
	case "PK":
		packed = openZip
	case "\x1f\x8b":
		return nil, errors.New("it is compressed by gzip: gunzip makes a tar file of it, which can be read")
	}
	files, names, err := packed(file, size)
	if err != nil {
		return nil, fmt.Errorf("it is no archive in a zip or tar file: %w", err)
	}
	return OpenAmong(files, names)
}

// OpenAmong is [openFS] for an archive's folder among files with these names. It refuses two archives, because the result would be
// ambiguous.
func OpenAmong(files fs.FS, names []string) (*Archive, error) {
	dir, err := manifestFolder(names)
	if err != nil {
		return nil, err
	}
	if files, err = fs.Sub(files, dir); err != nil {
		return nil, err
	}
	a, err := openFS(files)
	if errors.Is(err, errNoManifest) {
		return nil, fmt.Errorf("it is %w", err)
	}
	return a, err
}

// manifestFolder returns the folder of the topmost manifest.
func manifestFolder(names []string) (string, error) {
	dir, depth, beside := ".", math.MaxInt, ""
	for _, name := range slices.Sorted(slices.Values(names)) {
		n := strings.Count(name, "/")
		switch {
		case path.Base(name) != manifestName || !fs.ValidPath(name) || n > depth:
		case n == depth:
			beside = path.Dir(name)
		default:
			dir, depth, beside = path.Dir(name), n, ""
		}
	}
	if beside != "" {
		return "", fmt.Errorf("it has several archives, such as %q and %q: verify them one by one", dir, beside)
	}
	return dir, nil
}

func openZip(file io.ReaderAt, size int64) (files fs.FS, names []string, err error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, f := range z.File {
		name := path.Clean("/" + strings.ReplaceAll(f.Name, `\`, "/")) // unpackers may read such a name in different ways
		if seen[name] && !f.FileInfo().IsDir() {                       // package zip reads the first, most unpackers the last
			return nil, nil, fmt.Errorf("%q is in it twice", name[1:])
		}
		seen[name] = true
		names = append(names, f.Name)
	}
	return z, names, nil
}

// tarFiles are the files of a tar file by name.
type tarFiles map[string]tarFile

type tarFile struct {
	header *tar.Header
	at     io.ReaderAt
	offset int64
}

func openTar(file io.ReaderAt, size int64) (fs.FS, []string, error) {
	all := io.NewSectionReader(file, 0, size)
	files, seen := tarFiles{}, map[string]bool{}
	for t := tar.NewReader(all); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, slices.Collect(maps.Keys(files)), nil
		}
		if err != nil {
			return nil, nil, err
		}
		offset, err := all.Seek(0, io.SeekCurrent) // after the header: the reader does not read ahead
		if err != nil {
			return nil, nil, err
		}
		name := path.Clean(h.Name)
		switch {
		case h.Typeflag == tar.TypeDir:
		case seen[name]: // other readers may return another one
			return nil, nil, fmt.Errorf("%q is in it twice", name)
		case h.Typeflag == tar.TypeReg && !sparse(h) && offset+h.Size <= size:
			files[name] = tarFile{h, file, offset}
		}
		seen[name] = true
	}
}

// sparse reports whether GNU tar omitted a file's holes. The bytes of such an entry are not the file's.
func sparse(h *tar.Header) bool {
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// Open opens a file. Folders are not supported.
func (t tarFiles) Open(name string) (fs.File, error) {
	if f, ok := t[name]; ok {
		return &openTarFile{f, io.NewSectionReader(f.at, f.offset, f.header.Size)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir lists the files in a folder.
func (t tarFiles) ReadDir(folder string) (files []fs.DirEntry, err error) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if path.Dir(name) == folder {
			files = append(files, fs.FileInfoToDirEntry(t[name].header.FileInfo()))
		}
	}
	return files, nil
}

type openTarFile struct {
	tarFile
	io.Reader
}

func (f *openTarFile) Stat() (fs.FileInfo, error) { return f.header.FileInfo(), nil }
func (f *openTarFile) Close() error               { return nil }
