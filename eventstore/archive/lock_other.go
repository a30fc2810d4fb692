//go:build !unix

package archive

import "errors"

// lock always fails: only Unix can write archives.
func lock(string) (unlock func(), err error) {
	return nil, errors.New("lock the archive: archives are written on Unix only")
}
