package picture

import "github.com/google/uuid"

// Folder is where all pictures of a user are kept, with a slash behind it. It does not tell whose they are: links
// to pictures are seen by others.
func Folder(user uuid.UUID) string {
	return "pictures/" + uuid.NewSHA1(user, []byte("pictures")).String() + "/"
}
