//go:build interop

package app_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

// The official clients for Node run against a gateway: scripts/interop, which make test-interop installs.
func TestNodeClients(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cmd := apptest.Command(t, data, "serve").With("DATABASE_URL="+apptest.Database(t), "BAHI_GATEWAY_WRITE=true")
	g := apptest.ServeGateway(t, cmd, data)
	var member apptest.ApiKey
	g.Client().POST("/api/v1/api-keys", `{"name":"reader","permissions":{"ledger":"read"}}`).Status(201).JSON(&member)

	node := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "--test-force-exit", "--test-timeout=60000")
	node.Dir = "../../scripts/interop"
	node.Env = append(os.Environ(), "BAHI_INTEROP_OPERATOR="+g.Connection(apptest.OperatorKey),
		"BAHI_INTEROP_MEMBER="+g.Connection(member.Key), "BAHI_INTEROP_STRANGER="+g.Connection("bahi_nobody"))
	var out bytes.Buffer
	node.Stdout = io.MultiWriter(&out, os.Stdout)
	node.Stderr = node.Stdout
	err := node.Run()
	require.NoError(t, err)
	require.Regexp(t, `pass (1[0-9]|2[0-9])`, out.String(), "the clients' tests ran")
}
