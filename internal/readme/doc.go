// Package readme has tests that run what the README, and the page that goes on with it, tell their readers to type.
package readme
