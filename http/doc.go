// Package http serves the operations of all areas, the pages and the state of the process (/livez, /readyz, /metrics).
//
// Package api has the common parts of all operations. Each area (accesshttp, ledgerhttp, marketplacehttp, messaginghttp, audithttp,
// opshttp) registers its own in its routes.go: an operation fills a command, handles it and returns a view. Rules are in package domain,
// SQL in package readmodels.
//
// testdata/endpoints.tsv has the operations of the specification; a test compares them with the registered operations.
// testdata/openapi.json is generated from all registered operations, and a test shows every change.
package http
