//go:build interop

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The official clients for Node speak to a gateway: scripts/interop, which make test-interop installs.
func TestNodeClients(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cmd := command(t, data, "serve")
	cmd.Env = append(cmd.Env, "DATABASE_URL="+testDatabase(t), "BAHI_GATEWAY_WRITE=true")
	g := serveGateway(t, cmd, data)
	var member apiKey
	g.client().POST("/api/v1/api-keys", `{"name":"reader","permissions":{"ledger":"read"}}`).Status(201).JSON(&member)

	node := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "--test-force-exit", "--test-timeout=60000")
	node.Dir = "../../scripts/interop"
	node.Env = append(os.Environ(), "BAHI_INTEROP_OPERATOR="+g.connection(testOperatorKey),
		"BAHI_INTEROP_MEMBER="+g.connection(member.Key), "BAHI_INTEROP_STRANGER="+g.connection("bahi_nobody"))
	var out bytes.Buffer
	node.Stdout = io.MultiWriter(&out, os.Stdout)
	node.Stderr = node.Stdout
	err := node.Run()
	require.NoError(t, err)
	require.Regexp(t, `pass (1[0-9]|2[0-9])`, out.String(), "they ran")
}
