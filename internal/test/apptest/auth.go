package apptest

import (
	"net/http"
)

const Auth = "/api/v1/auth"

// Cookies returns the cookies that a response sets, by name.
func Cookies(r *http.Response) map[string]*http.Cookie {
	set := map[string]*http.Cookie{}
	for _, c := range r.Cookies() {
		set[c.Name] = c
	}
	return set
}
