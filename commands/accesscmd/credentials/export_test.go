package credentials

import "github.com/alexedwards/argon2id"

// WatchHashing reports each comparison of a password with a hash.
func WatchHashing(p *passwords, see func(password, hash string)) {
	check := p.check
	p.check = func(password, hash string) (bool, *argon2id.Params, error) {
		see(password, hash)
		return check(password, hash)
	}
}
