//go:build !unix

package archive

import "errors"

// lock is for who writes, and elsewhere than on Unix an archive is only read.
func lock(string) (unlock func(), err error) {
	return nil, errors.New("lock the archive: archives are written on Unix only")
}
