// Package pdf draws ledger statements and audit trails: the papers that a workshop hands to its auditor.
//
// One layout serves the five ledgers. It knows units, rows and entries, and nothing of banks or karigars, so another
// ledger costs its caller a conversion and this package nothing.
//
// # Decision: Latin is text, the scripts of India are outlines
//
// gofpdf (v1.16.2) writes one glyph per code point, in the order of the string. That is right for Latin. For Devanagari
// or Tamil it prints broken conjuncts, in which readers do not recognise their own names. So text
// is split into runs by script. Latin, Greek and Cyrillic runs are ordinary PDF text in an embedded subset of DejaVu Sans
// Condensed, which has the rupee sign. Runs in the scripts of the Eighth Schedule's languages (India's constitution), the Perso-Arabic
// one included, are
// shaped by HarfBuzz (go-text/typesetting). Each
// shaped glyph is a small form XObject with its outline in Noto, stored once in a document and placed at every use; so a document has
// only the glyphs that it uses.
// The string itself is written over it in the invisible rendering mode (3 Tr), as scanners do with recognised text, so
// that search, copy and pdftotext find the Unicode text. Width and line breaks come from the shaped advances, and a word
// that is too long breaks only between shaped clusters. Passages from right to left are reversed when a line is drawn.
//
// A letter that no embedded font has is transliterated, and the document says so once, at its end. What is no letter (emoji) is a visible
// box, never a gap. Characters that are invisible by definition (direction marks, joiners between Latin
// letters) are left out.
//
// Turned down: Nastaliq for Urdu, because its lines are twice as high, and a table's row would be too; a font per document whose private
// code
// points are the shaped glyphs, because gofpdf offers no way to build one and its copied text would be noise; one path per
// occurrence of a glyph, because a ledger of 100,000 rows would carry the same outlines a million times; another PDF
// library, because gofpdf was asked for and lacks nothing else.
//
// # Decision: a page is written when it ends
//
// gofpdf keeps all pages until the last one: 900 MB for 100,000 rows. So each page is drawn as a gofpdf template, which
// uses the document's fonts and gives its content back, and [file] writes that content. The end of the file has a second
// content for each page, its footer with the number of pages, and the objects that gofpdf writes for a document with one
// page: fonts, outlines, description. A statement's rows are never kept, and its columns are placed by [Extent], which the
// database adds up, so that the first page does not wait for the last row. 100,000 rows take 4 MB.
//
// # Decision: a statement that does not add up is not printed
//
// Write recomputes every balance (opening + IN - OUT, row by row, in each unit) from the entries and refuses a statement
// whose given balances differ, since a paper with a wrong sum is worse than an error. All arithmetic is
// shopspring/decimal; floats are coordinates on paper only.
//
// The same statement gives the same bytes: dates come from [Drawn], catalogues are sorted, no clock is read.
package pdf
