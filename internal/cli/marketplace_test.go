package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/marketplaceview"
)

// sold returns a company's id and slug.
func sold(t *testing.T, o *apptest.Server) (id, slug string) {
	t.Helper()
	var made marketplaceview.Company
	seller := o.Bearer(o.Key(o.Home, `{"marketplace":"write"}`).Key)
	seller.POST("/api/v1/companies", `{"name":"Asha Mills"}`).Status(201).JSON(&made)
	return made.ID.String(), made.Slug
}

func TestACompanyIsVerifiedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id, slug := sold(t, o)
	for args, said := range map[string][]string{slug: {slug + " is verified\n", `"verified":true`},
		slug + " --revoke": {slug + " is not verified\n", `"verified":false`}} {
		out := o.Done(t, append([]string{"company", "verify"}, strings.Fields(args)...)...)
		require.Equal(t, said[0], out)
		o.Anonymous().GET("/api/v1/companies/" + id).Status(200).Contains(said[1])
	}
	o.Denied(t, "bahi: Company not found", "company", "verify", "nobody")
}

func TestACatalogIsImportedFromTheShell(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	id, slug := sold(t, o)
	file := filepath.Join(t.TempDir(), "catalog.csv")
	run := func(args ...string) (string, string, int) {
		return apptest.Attached(t, o, append([]string{"catalog", "import", file, "--company", slug}, args...)...)
	}
	total := func(want string) {
		t.Helper()
		o.Anonymous().GET("/api/v1/catalog?company_id=" + id).Status(200).Contains(`"total":` + want + ",")
	}
	require.NoError(t, os.WriteFile(file, []byte("name,price\nHook,1\n=Bad,x\nNail,2\n"), 0o600))
	out, wrong, status := run("--dry-run")
	require.Equal(t, "would be: 2 products created, 1 rows failed\n", out, wrong)
	require.Equal(t, 1, status)
	total("0")
	out, wrong, status = run()
	require.Equal(t, "2 products created, 1 rows failed\n", out, wrong)
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: rows failed: see "+file+".errors.csv")
	report := worktest.File(t, file+".errors.csv")
	require.Equal(t, "\ufeffrow,error\n3,\"price: expected an amount, as in 1,250.50 (\"\"x\"\")\",'=Bad,x\n", string(report))
	total("2")
	out, _, _ = run()
	require.Equal(t, "imported before: 2 products created, 1 rows failed\n", out)
	total("2")

	require.NoError(t, os.WriteFile(file, []byte("name,price\nRing,1\n"), 0o600))
	out, wrong, status = run("--key", "again")
	require.Equal(t, 0, status, wrong)
	require.Equal(t, "1 products created, 0 rows failed\n", out)
	total("3")
	require.NoError(t, os.WriteFile(file, []byte("\x89PNG\x00"), 0o600))
	_, wrong, status = run()
	require.Equal(t, 1, status)
	require.Contains(t, wrong, "bahi: File must be CSV or Excel")
	_, wrong, status = apptest.Attached(t, o, "catalog", "import", file+".none", "--company", slug)
	require.NotEqual(t, 0, status)
	require.Contains(t, wrong, "none")
}
