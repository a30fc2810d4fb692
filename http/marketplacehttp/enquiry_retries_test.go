package marketplacehttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
	"bahi/internal/test/worktest"
	"bahi/readmodels/opsview"
)

// The crm never accepts the enquiry. The test moves the clock to each try.
func TestANotificationIsTriedEightTimesOverADay(t *testing.T) {
	t.Parallel()
	s := apptest.Settings(t, apptest.Database(t))
	var tries atomic.Int64
	crm := worktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	s.Outside.CRMURL, s.Outside.FetchAllow = crm.URL, []string{strings.TrimPrefix(crm.URL, "http://")}
	o := apptest.StartAs(t, s)
	owner := o.Person("owner@example.com")
	e := asked(t, o.Anonymous(), founded(t, owner.Client, `{"name":"Mill"}`).ID, "")
	const most = 8
	var waited time.Duration
	for try := 1; try < most; try++ {
		var failed opsview.Job
		require.Eventually(t, func() bool {
			for _, j := range o.Jobs("kind=push_lead&state=retryable") {
				failed = j
			}
			return failed.Attempt == try
		}, time.Minute, 10*time.Millisecond, "try %d", try)
		require.Equal(t, most, failed.MaxAttempts)
		wait := pgtest.Value[time.Duration](t, o.Sys.Pool, `select scheduled_at - attempted_at from river.river_job where id = $1`,
			failed.ID)
		require.Greater(t, wait, time.Minute, "after try %d", try)
		waited += wait
		owner.GET(enquiryAt(e.ID)).Status(200).Contains(`"crm":{"status":"queued"`)
		o.Operator().POST(fmt.Sprintf("/ops/jobs/%d/retry", failed.ID), nil).Status(200)
		o.Sql(`select pg_notify('river.river_insert', '{"queue":"push_lead"}')`) // River need not look for it
	}
	require.InDelta(t, 24, waited.Hours(), 3) // each wait is a tenth longer or shorter
	crmOf := notified(t, owner.Client, e.ID).Notifications.CRM
	require.Equal(t, []string{"failed", "no try succeeded within a day"}, []string{crmOf.Status, *crmOf.Error})
	require.EqualValues(t, most, tries.Load())
	require.Eventually(t, func() bool { return o.Jobs("kind=push_lead")[0].State == "completed" }, time.Minute, 10*time.Millisecond,
		"no try follows")
}
