// Package pdf draws ledger statements and reports for a workshop's auditor.
//
// One layout serves the five ledgers. The package has units, rows and entries, and no ledger's own terms. So a further
// ledger needs no change here.
//
// # Decision: Latin is text, the scripts of India are outlines
//
// gofpdf (v1.16.2) writes one glyph per code point, in the order of the string. That is right for Latin. For Devanagari
// or Tamil it prints broken conjuncts, and readers cannot recognise their own names. So text is split into runs by
// script. Latin, Greek and Cyrillic runs are ordinary PDF text in an embedded subset of DejaVu Sans Condensed, which has
// the rupee sign. HarfBuzz (go-text/typesetting) shapes the runs in the scripts of the Eighth Schedule's languages
// (India's constitution), including the Perso-Arabic script. Each shaped glyph is a small form XObject with its outline
// in Noto. A document contains each glyph once and places it at every use. The string itself is written over the glyphs
// in the invisible rendering mode (3 Tr), as scanners do with recognised text, so that search, copy and pdftotext find
// the Unicode text. The shaped advances determine width and line breaks. A word that is too long breaks only between
// shaped clusters. Right-to-left passages are reversed when a line is drawn.
//
// A character that no embedded font has is transliterated, or written by its name in Unicode, and a note at the document's
// end reports that. Invisible characters (direction marks, joiners between Latin letters) are omitted.
//
// Rejected alternatives:
//
//   - Nastaliq for Urdu: its lines, and so a table's rows, would be twice as high.
//   - A font per document, with the shaped glyphs at private code points: gofpdf cannot build one, and its copied text
//     would be unreadable.
//   - One path per occurrence of a glyph: a ledger of 100,000 rows would contain the same outlines a million times.
//   - Another PDF library: gofpdf was requested and has all other features.
//
// # Decision: a page is written when it ends
//
// gofpdf keeps all pages until the last one: 900 MB for 100,000 rows. So each page is drawn as a gofpdf template, which
// uses the document's fonts and returns its content, and [file] writes that content. The end of the file has a second
// content for each page, its footer with the number of pages, and the objects that gofpdf writes for a document with one
// page: fonts, outlines, description. A statement's rows are not kept. [Extent], which the database computes, determines
// the columns, so that the first page does not wait for the last row. 100,000 rows take 4 MB.
//
// # Decision: a statement that does not add up is not printed
//
// [Write] recomputes every balance (opening + IN - OUT, row by row, in each unit) from the entries. It refuses a statement
// whose given balances differ, because a paper with a wrong sum is worse than an error. All arithmetic is in
// shopspring/decimal; floats are coordinates on paper only.
//
// The same statement gives the same bytes: dates come from [Drawn], catalogues are sorted, no clock is read.
package pdf
