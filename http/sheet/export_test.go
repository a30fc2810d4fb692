package sheet

// WriteLines writes a sheet of at most so many lines.
var WriteLines = writeLines
