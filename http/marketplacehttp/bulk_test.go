package marketplacehttp_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
)

// sent uploads a file in a field of some name, with other fields before it.
func sent(t *testing.T, c *apitest.Client, path, content string, fields ...string) *apitest.Answer {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		require.NoError(t, form.WriteField(fields[i], fields[i+1]))
	}
	part, err := form.CreateFormFile("catalog", "a.csv")
	require.NoError(t, err)
	_, err = part.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	return c.With("Content-Type", form.FormDataContentType()).POST(path, b.Bytes())
}

const bulk = catalog + "/bulk"

func TestRowsOfAFileBecomeProducts(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	const file = "name,price,category\nHook,125.50,Brass\nBad,-,\n\nNail,1,Iron\n"
	sent(t, c.With("Bahi-Dry-Run", "true"), bulk, file).Status(200).Contains(`"created":2`)
	require.Equal(t, " of 0", names(c, "company_id="+k.ID.String()))
	sent(t, c, bulk, file).Status(200).
		Contains(`"success":true,"created":2,"failed":1`, `"errors":[{"row":3,"error":"price: expected an amount, as in 1,250.50 (\"-\")"}]`)
	require.Equal(t, "Nail,Hook of 2", names(o.Anonymous(), "company_id="+k.ID.String()))
	sent(t, c, bulk, "name,price\n,\na,x").Status(200).Contains(`"success":false,"created":0,"failed":1`)

	var found struct {
		Data []struct{ ID string } `json:"data"`
	}
	apptest.Lenient(t, o.Anonymous().GET(catalog+"?company_id="+k.ID.String()), &found)
	hook := item(found.Data[1].ID)
	edited := c.PATCH(hook, `{"moq":2}`).Status(200).Contains(`"price_amount":12550`, `"category":"Brass"`)
	require.Equal(t, edited.Text, o.Anonymous().GET(hook).Status(200).Text, "an imported product is changed like every other one")
	sent(t, c, bulk, "sku,name,price\nAB 1,Clip,1\n").Status(200).Contains(`"created":1`)
	sent(t, c.With("Bahi-Dry-Run", "true"), bulk, "sku,price\nAB 1,5\n").Status(200).Contains(`"updated":1`)
}

func TestAFileOfManyRowsIsImportedInBatches(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := seller(o, o.Home)
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	var file strings.Builder
	file.WriteString("name,price,category\n")
	const rows = 2600
	for i := range rows {
		fmt.Fprintf(&file, "p%d,1,c%d\n", i, i%2)
	}
	sent(t, c, bulk, file.String()).Status(200).Contains(fmt.Sprintf(`"success":true,"created":%d,"failed":0`, rows), `"errors":[]`)

	// Every page has the same rows as the whole list, even across the borders of buckets.
	for _, page := range []int{1, 2, 10, 11, 20, 25, 26} {
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprintf("p%d", rows-1-(page-1)*100-i))
		}
		require.Equal(t, fmt.Sprintf("%s of %d", strings.Join(want, ","), rows),
			names(o.Anonymous(), fmt.Sprintf("company_id=%s&limit=100&page=%d", k.ID, page)), page)
	}
	require.Equal(t, fmt.Sprintf("p1,p-1 of %d", rows/2)[:2],
		names(o.Anonymous(), fmt.Sprintf("company_id=%s&category=C1&limit=1&page=%d", k.ID, rows/2))[:2])
	require.Equal(t, fmt.Sprintf(" of %d", rows), names(o.Anonymous(), fmt.Sprintf("company_id=%s&limit=100&page=27", k.ID)))
}

func TestAFileIsForOneOfTheCallersCompanies(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, foreign := seller(o, o.Home), seller(o, o.Abroad)
	const file = "name,price\na,1"
	sent(t, c, bulk, file).Problem(409, "The workspace has no company")
	k := founded(t, c, `{"name":"`+unique()+`"}`)
	founded(t, c, `{"name":"`+unique()+`"}`)
	sent(t, c, bulk, file).Problem(422, "Validation error", "company_id", "the workspace has several companies: name one")
	sent(t, c, bulk, file, "company_id", k.ID.String()).Status(200)
	sent(t, c, bulk+"?company_id="+k.ID.String(), file).Status(200)
	sent(t, c, bulk, file, "company_id", "x").Problem(422, "Validation error", "company_id", "expected a UUID")
	sent(t, foreign, bulk, "nonsense", "company_id", k.ID.String()).Problem(403, "Not enough permissions to modify this company")
	sent(t, c, bulk, "\x89PNG\x00", "company_id", k.ID.String()).Problem(400, "File must be CSV or Excel")
	sent(t, c, bulk, "", "company_id", k.ID.String()).Problem(400, "File must be CSV or Excel")
	require.Equal(t, "a,a of 2", names(o.Anonymous(), "company_id="+k.ID.String()))
}
