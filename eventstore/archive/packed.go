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

// OpenPacked is [Open] for an archive's folder in a zip or tar file, which is read where it is: nothing is unpacked, but for the
// segment at hand. The folder may stand in it by itself or below others.
func OpenPacked(file io.ReaderAt, size int64) (*Archive, error) {
	magic := make([]byte, 2)
	if _, err := file.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	packed := openTar
	if string(magic) == "PK" {
		packed = openZip
	}
	files, names, err := packed(file, size)
	if err != nil {
		return nil, fmt.Errorf("it is no archive in a zip or tar file: %w", err)
	}
	if files, err = fs.Sub(files, manifestFolder(names)); err != nil {
		return nil, err
	}
	a, err := OpenFS(files)
	if errors.Is(err, errNoManifest) {
		return nil, fmt.Errorf("it is %w", err)
	}
	return a, err
}

// manifestFolder is where the manifest lies, the highest if there are several.
func manifestFolder(names []string) string {
	dir, depth := ".", math.MaxInt
	for _, name := range names {
		if n := strings.Count(name, "/"); path.Base(name) == manifestName && fs.ValidPath(name) && n < depth {
			dir, depth = path.Dir(name), n
		}
	}
	return dir
}

func openZip(file io.ReaderAt, size int64) (files fs.FS, names []string, err error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	return z, names, nil
}

// tarFiles are the files of a tar file, by name.
type tarFiles map[string]tarFile

type tarFile struct {
	header *tar.Header
	at     io.ReaderAt
	offset int64
}

func openTar(file io.ReaderAt, size int64) (fs.FS, []string, error) {
	all := io.NewSectionReader(file, 0, size)
	files := tarFiles{}
	for t := tar.NewReader(all); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, slices.Collect(maps.Keys(files)), nil
		}
		if err != nil {
			return nil, nil, err
		}
		offset, err := all.Seek(0, io.SeekCurrent) // behind the header: the reader reads nothing ahead
		if err != nil {
			return nil, nil, err
		}
		if h.Typeflag == tar.TypeReg && offset+h.Size <= size {
			files[path.Clean(h.Name)] = tarFile{h, file, offset}
		}
	}
}

// Open opens a file. Folders are not needed here.
func (t tarFiles) Open(name string) (fs.File, error) {
	if f, ok := t[name]; ok {
		return &openTarFile{f, io.NewSectionReader(f.at, f.offset, f.header.Size)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

type openTarFile struct {
	tarFile
	io.Reader
}

func (f *openTarFile) Stat() (fs.FileInfo, error) { return f.header.FileInfo(), nil }
func (f *openTarFile) Close() error               { return nil }
