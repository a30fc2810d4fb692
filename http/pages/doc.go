// Package pages serves the pages for browsers. Each read and write of a page is an operation of the API, which runs in the same process
// for the signed-in user. So the API's permissions, limits, dry runs and revisions apply to pages, and a page cannot do more than a client.
//
// A page is HTML from a template, and works without scripts. An application in the browser over the API was turned down: it needs its own
// routing, focus, loading and numbers, and a browser in each test.
//
// The forms of ledgers come from the OpenAPI document, so a further field needs no page. Texts are English in the code, and the tables of
// words translate them to Hindi and Gujarati; tests name each missing word.
package pages
