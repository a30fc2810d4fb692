package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/internal/app"
	"bahi/internal/test/apptest"
)

// takenOverTimeout limits a takeover by the other node, on a busy machine. A node tries four times a second.
const takenOverTimeout = 45 * time.Second

// nodes are two bahis that serve one log. They share a database and a master key, but no folder.
type nodes struct {
	t        *testing.T
	database string
	log      string // address of the journal, if there is one
	data     [2]string
	env      [2][]string // settings that differ between the nodes
	serving  [2]*apptest.Process
}

func (n *nodes) start(nth int) {
	n.t.Helper()
	cmd := apptest.Program(n.t, n.data[nth], "serve")
	cmd.Env = append(append(cmd.Env, "DATABASE_URL="+n.database, "EVENTSTORE_URL="+n.log), n.env[nth]...)
	n.serving[nth] = apptest.Serve(n.t, cmd)
	n.serving[nth].Ready()
}

func (n *nodes) url(nth int) string { return n.serving[nth].URL }

// worker returns the node that works on the books.
func (n *nodes) worker() (nth int) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		var working []int
		for i := range n.serving {
			if strings.Contains(n.serving[i].Client().GET("/metrics").Status(200).Text, `bahi_projection_active{projection="books"} 1`) {
				working = append(working, i)
			}
		}
		require.Less(n.t, len(working), 2, "at most one node works on a projection")
		if len(working) == 1 {
			nth = working[0]
		}
		return len(working) == 1
	}, takenOverTimeout, 20*time.Millisecond)
	return nth
}

// register registers a user at a node, and waits for the mail, which either node may send.
func (n *nodes) register(nth int, email string) {
	n.t.Helper()
	n.serving[nth].Client().With("Authorization", "").POST("/api/v1/auth/register", apptest.Registration(email)).Status(201)
	o := apptest.Server{T: n.t, Sys: &app.System{}}
	var sent int
	require.Eventually(n.t, func() bool {
		sent = 0
		for _, data := range n.data {
			o.Sys.Settings.Data = data
			sent += len(o.Mails(email, apptest.VerifySubject))
		}
		return sent > 0
	}, takenOverTimeout, 20*time.Millisecond, "the mail is sent")
	require.Equal(n.t, 1, sent, "the mail is sent once")
}

// signed returns the size of a node's newest checkpoint.
func (n *nodes) signed(nth int) uint64 {
	n.t.Helper()
	var newest apptest.AuditCheckpoint
	require.Eventually(n.t, func() bool {
		a := n.serving[nth].Client().GET("/audit/checkpoint")
		return a.Response.StatusCode == http.StatusOK && a.JSON(&newest) != nil
	}, takenOverTimeout, 20*time.Millisecond)
	return newest.Size
}

func TestNodesOnOneDatabaseTakeOverFromEachOther(t *testing.T) {
	t.Parallel()
	failOver(t, &nodes{t: t, database: apptest.Database(t)})
}

// failOver kills the node that works, in each round, while clients write to both and read from both.
func failOver(t *testing.T, n *nodes) {
	for i := range n.serving {
		n.data[i] = t.TempDir()
		n.start(i)
	}
	l := apptest.NewLoad(t, n.url(0), 4)
	l.Clients = l.Clients[:4]
	l.At(n.url(0), n.url(1))
	looking := apptest.NewWitnesses(t, 2, n.url(0), n.url(1))
	n.register(0, "first@example.com")
	n.register(1, "second@example.com")
	for round := range apptest.Rounds(t, 1) {
		dies := n.worker()
		lives := 1 - dies
		ctx, cancel := context.WithCancel(t.Context())
		written := make(chan struct{})
		go func() {
			defer close(written)
			l.Run(ctx)
		}()
		read := make(chan struct{})
		go func() {
			defer close(read)
			looking.Run(ctx)
		}()
		looking.At(n.url(lives), n.url(dies)) // they write to the surviving node
		looking.After(ctx, 60)
		require.NotZero(t, looking.Reads.Load())

		signed := n.signed(lives)
		looking.MayBeAway.Store(true)
		died := time.Now()
		n.serving[dies].Kill()
		position := n.serving[lives].Client().POST("/bank", `{"name":"Opened by the other"}`).Status(201).Header("Bahi-Position")
		survivor := n.serving[lives].Client().With("Bahi-Min-Position", position)
		require.Eventually(t, func() bool { return survivor.GET("/banks").Response.StatusCode == http.StatusOK }, takenOverTimeout,
			10*time.Millisecond)
		t.Logf("round %d: the other node has folded the writes after %v", round, time.Since(died).Round(time.Millisecond))
		l.At(n.url(lives))
		looking.At(n.url(lives))
		looking.MayBeAway.Store(false)

		n.register(lives, fmt.Sprintf("third-%d@example.com", round))
		require.Eventually(t, func() bool { return n.signed(lives) > signed }, takenOverTimeout, 20*time.Millisecond,
			"the other node signs checkpoints")
		looking.After(ctx, 30)
		cancel()
		<-written
		<-read
		l.Verify()
		n.start(dies)
		l.At(n.url(0), n.url(1))
	}
	require.Zero(t, l.Away.Load(), "the surviving node takes every write")
	t.Logf("%d writes were answered, %d reads, %d of them stale", l.Answered.Load(), looking.Reads.Load(), looking.Stale.Load())
	for _, args := range []string{"doctor books users", "audit verify --store"} { // both signed one history
		cmd := apptest.Command(t, t.TempDir(), strings.Fields(args)...).With("DATABASE_URL="+n.database, "EVENTSTORE_URL="+n.log)
		apptest.Healthy(t, cmd)
	}
}

func TestMissingDatabaseHostIsSkipped(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(apptest.Database(t))
	require.NoError(t, err)
	q := u.Query()
	q.Set("host", "127.0.0.1,"+q.Get("host"))
	q.Set("port", "1,"+q.Get("port"))
	q.Set("target_session_attrs", "read-write")
	u.RawQuery = q.Encode()
	cmd := apptest.Command(t, t.TempDir(), "serve").With("DATABASE_URL=" + u.String())
	p := apptest.Serve(t, cmd)
	p.Ready()
	p.Client().POST("/bank", `{"name":"HDFC"}`).Status(201)
	p.Stop()
}
