//go:build soak

package marketplacecmd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file of a few KB contains a cell of 60 MB. It is read, and its row refused.
func TestACellOf60MBIsARowThatIsRefused(t *testing.T) {
	t.Parallel()
	text := func(at, content string) string {
		return `<c r="` + at + `" t="inlineStr"><is><t>` + content + `</t></is></c>`
	}
	content := packed(t, map[string]string{
		"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ` +
			`ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ` +
			`ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override ` +
			`PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>`,
		"_rels/.rels": `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship ` +
			`Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" ` +
			`Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml": `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" ` +
			`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" ` +
			`r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship ` +
			`Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" ` +
			`Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml": `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">` +
			text("A1", "name") + text("B1", "price") +
			`</row><row r="2">` + text("A2", strings.Repeat("a", 60<<20)) + text("B2", "1") + `</row><row r="3">` + text("A3", "Hook") + text("B3",
			"1") + `</row></sheetData></worksheet>`,
	})
	require.Less(t, len(content), 1<<20)
	require.Equal(t, "Hook 100\n2: name: at most 200 characters", said(t, string(content)))
}
