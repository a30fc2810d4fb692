// Package console has the pages on which operators look at the system and act on it: projections and their
// rebuilds, events, the books at any date and as known at any position, what is parked, jobs, and mails that
// were kept instead of sent.
//
// Pages are rendered here and work without a script: whatever is done is a form that is posted and answered
// by a redirect. With one (htmx), what changes by itself is fetched again, and nothing else. An application in
// the browser was turned down: it would need an interface of its own, a build, and a second set of rules.
//
// Who signs in gives the API key of an operator. The cookie holds the key, sealed, and each request
// authenticates it again, so a key that is revoked opens nothing from then on. There is no table of
// sessions: what a cookie is worth is what its key is worth.
package console
