package cli_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/eventstore/tlog"
	"bahi/internal/test/apptest"
	"bahi/internal/test/pgtest"
)

func TestShellExportsCheckpointsKeysAndProofs(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	account := apptest.Open(clerk, "HDFC")
	apptest.Post(clerk, account, apptest.Deposit("2025-03-01", "12.5"))
	o.Signed()
	public := o.Done(t, "audit", "key")
	require.Equal(t, o.Operator().GET("/audit/key?format=text").Status(200).Text, public)
	keys, err := tlog.ParseKeys(public)
	require.NoError(t, err)
	note := o.Done(t, "audit", "checkpoint")
	c, _, err := keys.Open([]byte(note))
	require.NoError(t, err)
	require.EqualValues(t, o.Head(), c.Size)
	file := o.Done(t, "audit", "proof", "2")
	read, err := tlog.ParseProofs([]byte(file))
	require.NoError(t, err)
	_, _, err = keys.Verify(read[0])
	require.NoError(t, err)
	o.Denied(t, "position: is not in a tree of", "audit", "proof", "1000")

	dir := filepath.Join(t.TempDir(), "archive")
	kept := filepath.Join(t.TempDir(), "bahi.keys")
	require.NoError(t, os.WriteFile(kept, []byte(public), 0o600))
	out := o.Done(t, "audit", "export", dir)
	require.Regexp(t, `^\d+ events of the log \S+; segments: 1, checkpoints: \d+\n$`, out)
	out = o.Done(t, "audit", "verify", dir, "--key", kept)
	require.Contains(t, out, "VERIFIED")
	out, _, status := apptest.Attached(t, o, "audit", "verify", dir)
	require.Equal(t, 2, status)
	require.Contains(t, out, "CANNOT TELL")
	out = o.Done(t, "audit", "verify", "--store")
	require.Contains(t, out, "VERIFIED")
	for _, args := range [][]string{{}, {dir, "--store"}} {
		_, wrong, status := apptest.Attached(t, o, append([]string{"audit", "verify"}, args...)...)
		require.Equal(t, 2, status)
		require.Contains(t, wrong, "name one of the two: an archive's folder, or the log with --store")
	}
	_, wrong, status := apptest.Attached(t, o, "audit", "verify", "--store", "--checkpoint", kept)
	require.Equal(t, 2, status, "it says nothing against the log")
	require.Contains(t, wrong, "bahi.keys")
	_, wrong, status = apptest.Attached(t, o, "audit", "verify", t.TempDir())
	require.Equal(t, 2, status)
	require.Contains(t, wrong, "is no archive")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{}`), 0o600))
	o.Denied(t, "the archive is broken", "audit", "verify", dir)
}

func TestServerSignsWithAKeyRotatedBesideIt(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	clerk := o.Clerk(apptest.Home)
	apptest.Open(clerk, "HDFC")
	first := o.Signed()
	out := o.Done(t, "audit", "rotate-key", "--reason", "yearly")
	next := strings.TrimSpace(out)
	told := o.AuditEvents(apptest.OperatorKey, "type=AuditKeyRotated")
	require.Len(t, told, 1)
	require.Contains(t, string(told[0].Data), `"to":"`+next)
	apptest.Open(clerk, "SBI")
	o.Signed()
	keys := o.PublicKeys()
	require.Equal(t, 2, keys.Len())
	var all []apptest.AuditCheckpoint
	o.Operator().GET("/audit/checkpoints").Status(200).JSON(&all)
	both := 0
	for _, c := range all {
		_, by, err := keys.Open([]byte(c.Note))
		require.NoError(t, err)
		switch {
		case len(by) == 2:
			both++
			require.GreaterOrEqual(t, c.Position, told[0].Position)
		case c.Position < told[0].Position:
			require.NotContains(t, next, by[0].ID)
		default:
			require.Contains(t, next, by[0].ID)
		}
	}
	require.Equal(t, 1, both)
	require.Contains(t, apptest.Each(all, func(c apptest.AuditCheckpoint) string { return c.Note }), first.Note)
	o.Stop()
	o = apptest.StartOn(t, o.Database)
	apptest.Open(o.Clerk(apptest.Home), "Axis")
	_, by, err := keys.Open([]byte(o.Signed().Note))
	require.NoError(t, err)
	require.Len(t, by, 1)
	require.Contains(t, next, by[0].ID)
}

func TestOperatorsOwnKeySignsAndRotates(t *testing.T) {
	t.Parallel()
	one := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	two := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
	with := apptest.Settings(t, pgtest.DB(t)) // a database without a key
	with.AuditKey = one
	o := apptest.StartAs(t, with)
	apptest.Open(o.Clerk(apptest.Home), "HDFC")
	o.Signed()
	o.Stop()
	with.AuditKey = ""
	_, err := with.Open(t.Context(), true)
	require.ErrorContains(t, err, "give it in BAHI_AUDIT_KEY")
	with.AuditKey = two
	_, err = with.Open(t.Context(), true)
	require.Error(t, err)
	with.AuditKey = "short"
	_, err = with.Open(t.Context(), true)
	require.ErrorContains(t, err, "BAHI_AUDIT_KEY: expected base64 of 32 bytes")

	cmd := apptest.Command(t, t.TempDir(), "audit", "rotate-key", "--reason", "another safe", "--new-key", two)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+with.DatabaseURL, "BAHI_AUDIT_KEY="+one)
	_, wrong, status := apptest.Execute(t, cmd)
	require.Equal(t, 0, status, wrong)
	require.Contains(t, wrong, "Give this key in BAHI_AUDIT_KEY from now on")
	with.AuditKey = two
	o = apptest.StartAs(t, with)
	newest := o.Signed()
	_, by, err := o.PublicKeys().Open([]byte(newest.Note))
	require.NoError(t, err)
	require.Len(t, by, 2, "the checkpoint of the rotation")
}

func TestCheckpointsAreCopiedToAFolderAndToTheLog(t *testing.T) {
	t.Parallel()
	copies := filepath.Join(t.TempDir(), "safe")
	cmd := apptest.Command(t, t.TempDir(), "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+apptest.Database(t), "BAHI_AUDIT_COPIES="+copies+",log")
	p := apptest.Serve(t, cmd)
	p.Ready()
	p.Client().POST("/bank", `{"name":"HDFC"}`).Status(201)
	p.Until(func(said, _ string) bool { return strings.Contains(said, "msg=checkpoint size=") })
	p.Stop()
	files, err := filepath.Glob(filepath.Join(copies, "bahi-*", "*"))
	require.NoError(t, err)
	var newest string
	for _, f := range files {
		if filepath.Base(f) == "newest" {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			newest = string(text)
		}
	}
	c, err := tlog.ParseCheckpoint([]byte(newest))
	require.NoError(t, err)
	require.Contains(t, strings.Join(files, " "),
		"/"+strings.Repeat("0", 20-len(strconv.FormatUint(c.Size, 10)))+strconv.FormatUint(c.Size, 10))
}

// Kills at any moment leave no wrong signature, and the next process continues at the end of the log.
func TestKillsBetweenTilesAndSignaturesLeaveOneHistory(t *testing.T) {
	t.Parallel()
	database := apptest.Database(t)
	bahi := func(args ...string) *apptest.Cmd {
		cmd := apptest.Command(t, t.TempDir(), args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL="+database)
		return cmd
	}
	var public string
	for round := range apptest.Rounds(t, 2) {
		p := apptest.Serve(t, bahi("serve").AsProcess(t))
		p.Ready()
		client := p.Client()
		stop := time.After(300*time.Millisecond + time.Duration(round)*117*time.Millisecond) // a few signatures
		for busy := true; busy; {
			client.POST("/bank", `{"name":"HDFC"}`).Status(201)
			select {
			case <-stop:
				busy = false
			default:
			}
		}
		key := client.GET("/audit/key?format=text").Status(200).Text
		if public != "" {
			require.Equal(t, public, key)
		}
		public = key
		p.Kill()
	}
	p := apptest.Serve(t, bahi("serve"))
	p.Ready()
	p.Client().POST("/bank", `{"name":"Last"}`).Status(201)
	p.Stop()
	out, wrong, status := apptest.Execute(t, bahi("audit", "verify", "--store"))
	require.Equal(t, 0, status, "%s%s", out, wrong)
	require.Contains(t, out, "VERIFIED")
	require.NotContains(t, out, "after the last checkpoint", "the shutdown signs the last checkpoint")
	apptest.Healthy(t, bahi("doctor", "audit"))
}

func TestTwoNodesSignOneHistory(t *testing.T) {
	t.Parallel()
	database := apptest.Database(t)
	one, two := apptest.StartOn(t, database), apptest.StartOn(t, database)
	for range 3 {
		apptest.Open(one.Clerk(apptest.Home), "HDFC")
		apptest.Open(two.Clerk(apptest.Home), "SBI")
		require.Equal(t, one.Signed().Note, two.Signed().Note)
	}
	one.Stop()
	apptest.Open(two.Clerk(apptest.Home), "Axis")
	two.Signed()
	keys := two.PublicKeys()
	require.Equal(t, 1, keys.Len())
	two.Done(t, "audit", "verify", "--store")
}
