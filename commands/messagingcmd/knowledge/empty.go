package knowledge

import (
	_ "embed"

	"bahi/domain/wording"
)

// emptyLines has words without content, such as articles. Hindi and Gujarati words are also listed in Latin letters. The common words of
// English are those of [wording.IsStop].
//
//go:embed empty.txt
var emptyLines string

var empty = func() map[string]bool {
	all := map[string]bool{}
	for word := range wording.Terms(emptyLines) {
		all[word] = true
	}
	return all
}()
