package ledgerproj

// Begins is for tests that hold it against the tables' function.
var Begins = begins
