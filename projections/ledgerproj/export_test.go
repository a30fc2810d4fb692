package ledgerproj

// Begins is for tests that compare it with the SQL function.
var Begins = begins
