package picture

import "github.com/google/uuid"

// Folder returns the folder of all pictures of a user, with a trailing slash. Its name does not reveal the user, because other users see
// links to pictures.
func Folder(user uuid.UUID) string {
	return "pictures/" + uuid.NewSHA1(user, []byte("pictures")).String() + "/"
}
