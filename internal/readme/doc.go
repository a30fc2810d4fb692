// Package readme runs the commands that the README and the guides show.
package readme
