package sheet

// WriteLines writes sheets of at most the given number of lines.
var WriteLines = writeLines
