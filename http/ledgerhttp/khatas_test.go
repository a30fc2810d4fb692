package ledgerhttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apitest"
	"bahi/internal/test/apptest"
	"bahi/internal/test/khatapages"
	"bahi/internal/test/llmtest"
	"bahi/internal/test/worktest"
	"bahi/reactors/ledgerreact"
)

// scan uploads a file.
func scan(t *testing.T, c *apitest.Client, path string, file []byte) *apitest.Answer {
	t.Helper()
	form, kind := apptest.Form(t, "application/octet-stream", file)
	return c.With("Content-Type", kind).POST(path, form)
}

// scanned is the response to an upload.
type scanned struct {
	UploadID  *int64            `json:"upload_id"`
	Status    string            `json:"status"`
	Pipeline  string            `json:"pipeline"`
	Engine    string            `json:"engine"`
	Pages     int               `json:"pages"`
	PagesDone int               `json:"pages_done"`
	Entries   []json.RawMessage `json:"entries"`
	Rows      []json.RawMessage `json:"rows"`
	Warnings  []string          `json:"warnings"`
	Error     string            `json:"error"`
	Submitted bool              `json:"submitted"`
	CreatedAt time.Time         `json:"created_at"`
	Result    *scanned          `json:"result"`

	ContentType string            `json:"content_type"`
	EntryCount  int               `json:"entry_count"`
	Actor       string            `json:"actor"`
	Submits     []json.RawMessage `json:"submitted_rows"`
}

func TestPageIsReadCheckedAndSubmitted(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	imran, sbi := made(clerk, "/karigar", `{"name":"Imran"}`), made(clerk, "/bank", `{"name":"SBI"}`)
	page := khatapages.Typed("Party: Imran", "OUT", "1/3 silver 500 99.5 497.5", "2/3 cash 20,000")

	var dry, read scanned
	scan(t, clerk.With("Bahi-Dry-Run", "true"), "/khata-upload", page).Status(200).JSON(&dry)
	require.Nil(t, dry.UploadID)
	require.Len(t, dry.Entries, 2)
	scan(t, clerk, "/khata-upload", page).Status(200).JSON(&read)
	require.Equal(t, []any{"done", "v1", "text", 1}, []any{read.Status, read.Pipeline, read.Engine, read.Pages})
	require.Empty(t, read.Rows)
	var entry struct {
		ID         int64   `json:"id"`
		Side       string  `json:"side"`
		Ledger     string  `json:"ledger"`
		AccountID  int64   `json:"account_id"`
		Weight     float64 `json:"weight"`
		Confidence float64 `json:"confidence"`
	}
	require.NoError(t, json.Unmarshal(read.Entries[0], &entry))
	require.Equal(t, []any{int64(1), "out", "karigar", imran, 500.0}, []any{entry.ID, entry.Side, entry.Ledger, entry.AccountID, entry.Weight})
	require.InDelta(t, 0.8, entry.Confidence, 0.2)

	at := fmt.Sprintf("/khata-uploads/%d", *read.UploadID)
	upload := apitest.Read[scanned](clerk.GET(at).Status(200))
	require.False(t, upload.Submitted)
	require.Equal(t, read.Entries, upload.Result.Entries)
	original := clerk.GET(at + "/original").Status(200)
	require.Equal(t, string(page), original.Text)
	require.Contains(t, original.Header("Content-Disposition"), "attachment")
	// The recognised entries can be submitted unchanged, with the fields that the server ignores.
	body := fmt.Sprintf(`{"upload_id":%d,"entries":[%s,{"ledger":"bank","account_id":%d,"side":"in","date":"2025-03-02","item_name":"cash",`+
		`"amount":20000}]}`, *read.UploadID, strings.ReplaceAll(string(read.Entries[0]), `"amount":null`, `"amount":10`), sbi)
	o.Clerk(o.Abroad).POST("/khata-submit", body).Status(404)
	clerk.With("Bahi-Dry-Run", "true").POST("/khata-submit", body).Status(200).Contains(`"created":2`,
		fmt.Sprintf(`"ledger":"bank","account_id":%d}`, sbi),
		fmt.Sprintf(`{"ledger":"bank","account_id":%d,"name":"SBI","before":{"balance":0},"after":{"balance":20000}}`, sbi),
		`"after":{"cash_balance":-10,"crystal_balance":-497.5,"cash_position":"they_owe","crystal_position":"they_owe"}`)
	var done struct {
		UploadID *int64 `json:"upload_id"`
		Created  int    `json:"created"`
		Failed   int    `json:"failed"`
		Results  []struct {
			Index     int    `json:"index"`
			Ledger    string `json:"ledger"`
			AccountID int64  `json:"account_id"`
			RowID     int64  `json:"row_id"`
		} `json:"results"`
	}
	clerk.POST("/khata-submit", body).Status(201).JSON(&done)
	require.Equal(t, 2, done.Created)
	require.Equal(t, []int{0, 1}, []int{done.Results[0].Index, done.Results[1].Index})
	require.Equal(t, []int64{imran, sbi}, []int64{done.Results[0].AccountID, done.Results[1].AccountID})
	clerk.GET(fmt.Sprintf("/karigar-ledger/%d/row/%d", imran, done.Results[0].RowID)).Status(200).Contains(`"fine_weight":497.5`,
		`"crystal_balance":-497.5`)
	clerk.GET(fmt.Sprintf("/bank-ledger/%d/row/%d", sbi, done.Results[1].RowID)).Status(200).Contains(`"balance":20000`)
	clerk.GET(at).Status(200).JSON(&upload)
	require.True(t, upload.Submitted)
	posts := `"submitted_rows":[{"ledger":"karigar","account_id":%d,"row_id":%d},{"ledger":"bank","account_id":%d,"row_id":%d}]`
	if done.Results[1].RowID < done.Results[0].RowID {
		posts = `"submitted_rows":[{"ledger":"bank","account_id":%[3]d,"row_id":%[4]d},{"ledger":"karigar","account_id":%[1]d,"row_id":%[2]d}]`
	}
	clerk.GET(at).Contains(fmt.Sprintf(posts, imran, done.Results[0].RowID, sbi, done.Results[1].RowID))
	clerk.POST("/khata-submit", body).Problem(409, "Khata upload was already submitted")
	clerk.POST("/khata/submit", fmt.Sprintf(`{"upload_id":%d,"rows":[{"ledger":"bank","account_id":%d,"date":"2025-03-02",`+
		`"in_entries":[{"amount":1}]}]}`, *read.UploadID, sbi)).Problem(409, "Khata upload was already submitted")
}

func TestUploadsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	uploads := apitest.Read[[]scanned](clerk.GET("/khata-uploads").Status(200))
	require.NotNil(t, uploads)
	require.Empty(t, uploads)
	var ids []int64
	for _, path := range []string{"/khata-upload", "/khata-upload-v2", "/khata-upload"} {
		read := apitest.Read[scanned](scan(t, clerk, path, khatapages.Typed("Party: Imran", "OUT", "1/3 silver 500 99.5 497.5")).Status(200))
		ids = append(ids, *read.UploadID)
	}
	clerk.POST("/khata-submit", fmt.Sprintf(
		`{"upload_id":%d,"entries":[{"ledger":"bank","account_id":%d,"side":"in","date":"2025-03-01","amount":5}]}`,
		ids[2], made(clerk, "/bank", `{"name":"SBI"}`))).Status(201)
	all := clerk.GET("/khata-uploads").Status(200)
	all.JSON(&uploads)
	require.Equal(t, "3", all.Header("X-Total-Count"))
	require.Equal(t, []int64{ids[2], ids[1], ids[0]}, []int64{*uploads[0].UploadID, *uploads[1].UploadID, *uploads[2].UploadID})
	require.Equal(t, []any{"done", "v1", "application/pdf", 1, true},
		[]any{uploads[0].Status, uploads[0].Pipeline, uploads[0].ContentType, uploads[0].EntryCount, uploads[0].Submitted})
	require.Equal(t, []any{"v2", false}, []any{uploads[1].Pipeline, uploads[1].Submitted})
	require.Contains(t, uploads[0].Actor, "key:")
	waiting := clerk.GET("/khata-uploads?page_size=1&waiting=true").Status(200)
	waiting.JSON(&uploads)
	require.Equal(t, []string{"2", fmt.Sprint(ids[1])}, []string{waiting.Header("X-Total-Count"), fmt.Sprint(*uploads[0].UploadID)})
	page := clerk.GET("/khata-uploads?page=2&page_size=2").Status(200)
	uploads = nil
	page.JSON(&uploads)
	require.Equal(t, "3", page.Header("X-Total-Count"))
	require.Equal(t, []int64{ids[0]}, []int64{*uploads[0].UploadID})
	require.Len(t, uploads, 1)
	clerk.GET("/khata-uploads?page=2").Status(422)
}

func TestSecondPipelineGroupsRowsThatCanBeSubmitted(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	meena := made(clerk, "/client", `{"name":"Meena Shah"}`)
	var read scanned
	scan(t, clerk, "/khata-upload-v2", khatapages.Typed("Party: Meena Shaah", "IN", "1/3 cash 20,000", "1/3 silver 10 g")).
		Status(200).JSON(&read)
	require.Equal(t, "v2", read.Pipeline)
	require.Len(t, read.Rows, 1)
	var of struct{ Date string }
	require.NoError(t, json.Unmarshal(read.Rows[0], &of))
	require.JSONEq(t, fmt.Sprintf(`{"ledger":"client","account_id":%d,"party_name":"Meena Shaah","date":"%s",`+
		`"in_entries":[{"item_name":"cash","amount":20000},{"item_name":"silver","weight":10}],"out_entries":[]}`, meena, of.Date),
		string(read.Rows[0]))
	require.Contains(t, strings.Join(read.Warnings, "\n"), `"Meena Shaah" is taken for client "Meena Shah"`)
	row := strings.Replace(string(read.Rows[0]), `"weight":10`, `"weight":10,"touch":92`, 1)
	clerk.POST("/khata/submit", fmt.Sprintf(`{"upload_id":%d,"rows":[%s]}`, *read.UploadID, row)).Status(201).Contains(`"created":1`)
	clerk.GET(fmt.Sprintf("/client/%d", meena)).Status(200).Contains(`"cash_balance":20000`, `"crystal_balance":9.2`)
}

func TestWrongSubmissionsNameTheirEntriesAndPostNothing(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	clerk := o.Clerk(o.Home)
	sbi := made(clerk, "/bank", `{"name":"SBI"}`)
	foreign := made(o.Clerk(o.Abroad), "/bank", `{"name":"HDFC"}`)
	good := fmt.Sprintf(`{"ledger":"bank","account_id":%d,"side":"in","date":"2025-03-01","amount":5}`, sbi)
	theirs := strings.Replace(good, fmt.Sprint(sbi), fmt.Sprint(foreign), 1)
	clerk.POST("/khata-submit", `{"entries":[`+good+`,`+theirs+`]}`).Status(422).Contains(`"field":"entries[1].account_id"`)
	for side, wrong := range map[string]string{`"up"`: "expected one of in, out", `5`: "expected a text", `null`: "must not be null"} {
		unsided := strings.Replace(strings.Replace(theirs, `"in"`, side, 1), `"amount":5`, `"amount":0`, 1)
		const unknown = "Bank account not found"
		clerk.POST("/khata-submit", `{"entries":[`+good+`,`+unsided+`,`+theirs+`]}`).Problem(422, "Validation error", "entries[1].side", wrong,
			"entries[1].amount", "must be more than 0", "entries[1].account_id", unknown, "entries[2].account_id", unknown)
	}
	row := fmt.Sprintf(`{"ledger":"bank","account_id":%d,"date":"2025-03-01","in_entries":[{"amount":5}]}`, sbi)
	for body, field := range map[string]string{
		`{"rows":[` + row + `,` + strings.Replace(row, `"amount":5`, `"amount":5,"touch":92`, 1) + `]}`: "rows[1].in_entries[0].touch",
		`{"rows":[` + strings.Replace(row, fmt.Sprint(sbi), fmt.Sprint(foreign), 1) + `]}`:              "rows[0].account_id",
	} {
		clerk.POST("/khata/submit", body).Status(422).Contains(`"field":"` + field + `"`)
	}
	clerk.POST("/khata-submit", `{"upload_id":999999999,"entries":[`+good+`]}`).Problem(404, "Khata upload not found")

	clerk.PUT("/books/lock", `{"locked_through":"2025-03-01"}`).Status(200)
	late := strings.Replace(good, "2025-03-01", "2025-03-02", 1)
	clerk.POST("/khata-submit", `{"entries":[`+late+`,`+good+`]}`).Problem(409,
		"Books are locked through 2025-03-01").Contains(`"field":"entries[1].date"`)
	clerk.GET(fmt.Sprintf("/bank/%d", sbi)).Status(200).Contains(`"balance":0`)
}

func TestFilesThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	scan(t, clerk, "/khata-upload", nil).Status(415)
	scan(t, clerk, "/khata-upload", []byte("hello")).Problem(415, "File must be a JPEG, PNG, WebP, TIFF or PDF")
	scan(t, clerk, "/khata-upload", []byte("\x00\x00\x00\x18ftypheic")).Status(415).Contains("HEIC")
	scan(t, clerk, "/khata-upload", append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)).Status(422).Contains(`"field":"file"`)
	scan(t, clerk, "/khata-upload", append([]byte("%PDF-1.4\n"), make([]byte, 15<<20)...)).Status(413)
	scan(t, clerk.With("Prefer", "respond-async", "Bahi-Dry-Run", "true"), "/khata-upload",
		khatapages.Typed("one")).Status(422).Contains(`"field":"Prefer"`)
}

func TestARepetitionOfAnUploadThatIsReadLaterIsAnsweredSoToo(t *testing.T) {
	t.Parallel()
	clerk := apptest.Clerk(t)
	again := clerk.With("Idempotency-Key", "later")
	file := []byte("%PDF-1.4 nothing") // a file that is never read
	later := scan(t, again.With("Prefer", "respond-async"), "/khata-upload", file).Status(202)
	repeated := scan(t, again, "/khata-upload", file).Status(202)
	require.Equal(t, []string{later.Text, later.Header("Location"), ""},
		[]string{repeated.Text, repeated.Header("Location"), repeated.Header("Preference-Applied")})
}

func TestUploadsAreReadLaterAndRemovedWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(o.Home)
	answer := scan(t, clerk.With("Prefer", "respond-async"), "/khata-upload",
		khatapages.Typed("Party: Imran", "OUT", "1/3 silver 500 99.5 497.5")).Status(202)
	require.Equal(t, "respond-async", answer.Header("Preference-Applied"))
	at := answer.Header("Location")
	upload := apitest.Read[scanned](answer)
	require.Equal(t, "processing", upload.Status)
	require.Equal(t, fmt.Sprintf("/khata-uploads/%d", *upload.UploadID), at)
	require.Eventually(t, func() bool {
		upload = scanned{}
		clerk.GET(at).Status(200).JSON(&upload)
		return upload.Status == "done"
	}, 2*time.Minute, 20*time.Millisecond)
	require.Equal(t, []int{1, 1, 1}, []int{upload.Pages, upload.PagesDone, len(upload.Result.Entries)})

	bad := scan(t, clerk.With("Prefer", "respond-async"), "/khata-upload", []byte("%PDF-1.4 nothing")).Status(202).Header("Location")
	require.Eventually(t, func() bool {
		upload = scanned{}
		clerk.GET(bad).Status(200).JSON(&upload)
		return upload.Status == "failed"
	}, 2*time.Minute, 20*time.Millisecond)
	require.Contains(t, upload.Error, "broken")

	reading := &ledgerreact.Reading{Remove: o.Sys.Khatas.Remove, Views: o.Sys.Ledger, Keep: time.Hour, Now: time.Now}
	require.NoError(t, reading.Sweep(t.Context()))
	clerk.GET(at + "/original").Status(200)
	keys, err := o.Sys.Blobs.List(t.Context(), "khata/")
	require.NoError(t, err)
	require.Len(t, keys, 3)
	content, _, err := o.Sys.Blobs.Get(t.Context(), keys[0])
	require.NoError(t, err)
	require.NotContains(t, string(content), "PDF", "it is encrypted")

	reading.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	require.NoError(t, reading.Sweep(t.Context()))
	clerk.GET(at+"/original").Problem(404, "The file of the khata upload was deleted")
	upload = scanned{}
	clerk.GET(at).Status(200).JSON(&upload)
	require.Nil(t, upload.Result)
	keys, err = o.Sys.Blobs.List(t.Context(), "khata/")
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestWithoutProgramsTheServerRunsAndSaysSo(t *testing.T) {
	t.Parallel()
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.OCR = "off"
	o := apptest.StartAs(t, with)
	clerk := o.Clerk(o.Home)
	scan(t, clerk, "/khata-upload", khatapages.Typed("one")).Problem(503, "No text recognition engine is configured: BAHI_OCR=off")
	page, _ := khatapages.Page(1, khatapages.Style{Sides: 1, Rows: 1})
	scan(t, clerk, "/khata-upload", page).Status(503)
	o.Anonymous().GET("/readyz").Contains("BAHI_OCR=off")
	sbi := made(clerk, "/bank", `{"name":"SBI"}`)
	clerk.POST("/khata-submit", fmt.Sprintf(`{"entries":[{"ledger":"bank","account_id":%d,"side":"in","date":"2025-03-01","amount":5}]}`,
		sbi)).Status(201)
}

func TestShippedPageIsRead(t *testing.T) {
	t.Parallel()
	file := worktest.File(t, "../../docs/khata-page.png")
	_, rows := khatapages.Shipped()
	clerk := apptest.Clerk(t)
	read := apitest.Read[scanned](scan(t, clerk, "/khata-upload", file).Status(200))
	require.Equal(t, "tesseract", read.Engine)
	require.Len(t, read.Entries, len(rows))

	// A model that saw the page and added nothing is not its engine.
	model := llmtest.New(t, llmtest.Says(`{"entries":[]}`))
	with := apptest.Settings(t, apptest.Database(t))
	with.Outside.ModelURL, with.Outside.VisionModel = model.URL, "m"
	o := apptest.StartAs(t, with)
	scan(t, o.Clerk(o.Home), "/khata-upload-v2", file).Status(200).JSON(&read)
	require.Equal(t, "tesseract", read.Engine)
	require.Len(t, model.Asked(), 1)
}
