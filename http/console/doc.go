// Package console has the operators' pages: projections and their rebuilds, events, the books at any date and as known at any position,
// parked followers, jobs, and mails that were kept instead of sent.
//
// The server renders the pages, and they work without scripts: each action is a form that is posted and answered by a redirect. With
// scripts (htmx), the changing parts are fetched again, and nothing else. An application in the browser was turned down: it would need
// its own interface, a build, and a second set of rules.
//
// An operator signs in with an API key. The cookie has the sealed key, and each request authenticates it again, so a revoked key opens
// nothing any more.
package console
