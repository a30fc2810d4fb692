// Package app wires the parts of Bahi: settings, database, event store, HTTP and background work. It is the only package that knows all
// layers.
//
// A System is one installation that is open in this process. Shell commands open one without background work; serve adds the HTTP server,
// projections, reactors and jobs. Wiring is plain code in the order of its dependencies, so the compiler finds a missing part.
//
// Settings come from the environment or from flags, and are all checked before anything is created. Parts without a setting are
// embedded: Postgres, keys, mails and images in the data folder.
package app
