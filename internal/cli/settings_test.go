package cli_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"bahi/http/api"
	"bahi/internal/app"
	"bahi/internal/cli"
	"bahi/internal/test/apptest"
	"bahi/internal/test/worktest"
)

var update = flag.Bool("update", false, "write docs/settings.md")

func TestTheSettingsPageIsTheProgramsSettings(t *testing.T) {
	t.Parallel()
	k, err := kong.New(&cli.Commands{})
	require.NoError(t, err)
	serve := slices.IndexFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	var groups []string
	rows := map[string]string{}
	for _, flag := range slices.Concat(k.Model.Children[serve].AllFlags(false)...) {
		if len(flag.Envs) == 0 {
			require.Equal(t, "help", flag.Name)
			continue
		}
		require.NotNil(t, flag.Group, flag.Name)
		if !slices.Contains(groups, flag.Group.Title) {
			groups = append(groups, flag.Group.Title)
		}
		unit, example := valueOf(flag)
		require.NotEmpty(t, example, flag.Name)
		if flag.IsBool() {
			flag.Default = cmp.Or(flag.Default, "false")
		}
		rows[flag.Group.Title] += fmt.Sprintf("| `%s`, `--%s` | %s | %s | %s | %s |\n",
			flag.Envs[0], flag.Name, flag.Help, code(flag.Default), unit, code(example))
	}
	var limits strings.Builder
	for _, name := range slices.Sorted(maps.Keys(api.DefaultLimits())) {
		limit := api.DefaultLimits()[name]
		value := "off"
		if limit.Requests > 0 {
			value = fmt.Sprintf("%d/%s", limit.Requests, strings.TrimSuffix(strings.TrimSuffix(limit.Per.String(), "0s"), "0m"))
		}
		fmt.Fprintf(&limits, "| `BAHI_LIMIT_%s` | %s |\n", strings.ToUpper(name), code(value))
	}
	var page strings.Builder
	page.WriteString("# Settings\n\n" +
		"Each setting of the server is an environment variable and a flag of `bahi serve`; the flag has priority. " +
		"The other commands\naccept those that they use. " +
		"A command that needs a running server finds it by `BAHI_DATA`, since the server writes its address\n" +
		"and the operator's key into the data folder; `BAHI_ADDR` and `BAHI_ADMIN_API_KEY` override these values.\n\n" +
		"`go test ./internal/cli -run TestTheSettingsPage -update` writes this page.\n")
	for _, group := range groups {
		fmt.Fprintf(&page, "\n## %s\n\n| setting | meaning | default | value | example |\n|---|---|---|---|---|\n%s", group, rows[group])
	}
	fmt.Fprintf(&page, "\n## Rate limits\n\nRequests in a sliding window: `20/1m` allows 20 in a minute, `off` allows all.\n\n"+
		"| setting | default |\n|---|---|\n%s", limits.String())
	const path = "../../docs/settings.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page.String()), 0o600))
	}
	text := worktest.File(t, path)
	require.Equal(t, page.String(), string(text), "run this test with -update")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// examples are the examples of settings that have none of their own, by their placeholder.
var examples = map[string]string{
	"BASE64": "openssl rand -base64 32", "FILE": "/etc/bahi/tls.pem", "ID": "bahi", "KEY": "a-long-secret", "NAME": "bahi",
	"PHONE": "919812345678", "SECRET": "a-long-secret", "TOKEN": "a-long-secret", "URL": "https://api.example.org/path",
	"UUID": "0190b2a4-5c1e-7c40-9d0e-3f6f2d1b8a11",
}

// valueOf returns the unit or form of a setting's values, and an example.
func valueOf(flag *kong.Flag) (unit, example string) {
	example = cmp.Or(flag.Tag.Get("example"), flag.Default, examples[flag.PlaceHolder])
	switch {
	case flag.Tag.Get("unit") != "":
		unit = flag.Tag.Get("unit")
	case flag.Enum != "":
		unit = strings.ReplaceAll(flag.Enum, ",", ", ")
	case flag.IsBool():
		unit, example = "true, false", cmp.Or(example, "true")
	case strings.Contains(flag.Target.Type().String(), "time.Duration"):
		unit = "duration"
	case examples[flag.PlaceHolder] != "" && len(flag.PlaceHolder) < 5:
		unit = flag.PlaceHolder
	default:
		unit = cmp.Or(strings.ToLower(flag.PlaceHolder), "text")
	}
	if flag.IsSlice() {
		unit += ", several with commas"
	}
	return unit, example
}

// A refused first start leaves nothing behind, and has printed no useless key.
func TestWrongSettingsAreRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	for settings, why := range map[string]string{
		"BAHI_ACCESS_TOKEN_LIFETIME=999h":                      "an access token's life of 999h0m0s",
		"BAHI_ADMIN_API_KEY=short":                             "BAHI_ADMIN_API_KEY: expected at least 16 characters",
		"BAHI_ADMIN_EMAIL=asha":                                "BAHI_ADMIN_EMAIL: expected an address",
		"BAHI_ANSWER_FILES=-1":                                 "BAHI_ANSWER_FILES: -1 is negative",
		"BAHI_AUDIT_COPIES=ftp://x":                            "BAHI_AUDIT_COPIES: ",
		"BAHI_AUDIT_EVERY=40s":                                 "BAHI_AUDIT_EVERY: 40s is not between",
		"BAHI_AUDIT_KEY=abc":                                   "BAHI_AUDIT_KEY: expected base64",
		"BAHI_AUDIT_WITNESS=abc":                               "BAHI_AUDIT_WITNESS: expected an address",
		"BAHI_AUDIT_WITNESS=https://x.example":                 "requires BAHI_AUDIT_WITNESS_KEY",
		"BAHI_AUDIT_WITNESS_KEY=abc":                           "BAHI_AUDIT_WITNESS_KEY: ",
		"BAHI_CAMPAIGN_RATE=-1":                                "BAHI_CAMPAIGN_RATE: ",
		"BAHI_CORS_ORIGINS=abc":                                "BAHI_CORS_ORIGINS",
		"BAHI_DB_CONNECTIONS=1":                                "BAHI_DB_CONNECTIONS: expected 2 or more",
		"BAHI_DELETION_GRACE=999h":                             "BAHI_DELETION_GRACE: ",
		"BAHI_EXPENSIVE_ANSWERS=-1":                            "BAHI_EXPENSIVE_ANSWERS: ",
		"BAHI_FETCH_ALLOW=abc":                                 "BAHI_FETCH_ALLOW: ",
		"BAHI_FRONTEND_URL=abc":                                "BAHI_FRONTEND_URL: ",
		"BAHI_GATEWAY_GRPC_ADDR=abc":                           "BAHI_GATEWAY_GRPC_ADDR: ",
		"BAHI_GATEWAY_TLS_CERT=none":                           "BAHI_GATEWAY_TLS_CERT and BAHI_GATEWAY_TLS_KEY go together",
		"BAHI_GATEWAY_TLS_CERT=none BAHI_GATEWAY_TLS_KEY=none": "BAHI_GATEWAY_TLS_CERT: open none",
		"BAHI_KHATA_DAYS=-1":                                   "BAHI_KHATA_DAYS: ",
		"BAHI_LIMIT_AUTH=abc":                                  "BAHI_LIMIT_AUTH: ",
		"BAHI_MAIL_FROM=abc":                                   "BAHI_MAIL_FROM: ",
		"BAHI_MASTER_KEY=abc":                                  "BAHI_MASTER_KEY: expected 32 bytes",
		"BAHI_OCR_PAGES=-1":                                    "BAHI_OCR_PAGES: ",
		"BAHI_PASSWORD_MINIMUM=3":                              "a password's minimum of 3 characters",
		"BAHI_PUBLIC_URL=abc":                                  "BAHI_PUBLIC_URL: ",
		"BAHI_READ_WAIT=-1s":                                   "BAHI_READ_WAIT: -1s is negative",
		"BAHI_REFRESH_GRACE=-1s":                               "the grace is negative",
		"BAHI_REFRESH_GRACE=1000h":                             "a grace of 1000h0m0s is longer than a minute",
		"BAHI_SCRUB_EVERY=-1h":                                 "BAHI_SCRUB_EVERY: ",
		"BAHI_STREAMS=-1":                                      "BAHI_STREAMS: ",
		"BAHI_TIMEZONE=Mars":                                   "BAHI_TIMEZONE: ",
		"BAHI_ADDR=127.0.0.1:99999":                            "BAHI_ADDR: ",
		"BAHI_ADDR=127.0.0.1:htpt":                             "BAHI_ADDR: ",
		"BAHI_GATEWAY_GRPC_ADDR=127.0.0.1:-1":                  "BAHI_GATEWAY_GRPC_ADDR: ",
		"CHAT_BASE_URL=http://10.0.0.8/v21.0":                  "CHAT_BASE_URL: 10.0.0.8:80 is not a public address",
		"CRM_URL=http://localhost:9000/leads":                  "CRM_URL: localhost:9000 is not a public address",
		"SOCIAL_APP_SECRET=a,,b":                               "SOCIAL_APP_SECRET: a secret is empty",
		"BAHI_TRUSTED_PROXIES=abc":                             "BAHI_TRUSTED_PROXIES: ",
		"BAHI_WEBHOOK_DAYS=0":                                  "BAHI_WEBHOOK_DAYS: ",
		"BLOB_URL=ftp://x":                                     "BLOB_URL: ",
		"BLOB_URL=s3://bucket":                                 "BLOB_URL: the region is missing",
		"BAHI_FETCH_ALLOW=http://x":                            "BAHI_FETCH_ALLOW: ",
		"FEED_URL=kafka://u@localhost?sasl=plain":              "FEED_URL: sasl: the user has no password",
		"SMTP_URL=smtp://u@localhost?from=a@b.example":         "SMTP_URL: the user has no password",
		"BOT_MIN_COVERAGE=7":                                   "BOT_MIN_COVERAGE: 7 is more than 1",
		"CHAT_BASE_URL=abc":                                    "CHAT_BASE_URL: ",
		"CHAT_ENQUIRY_TEMPLATE=abc":                            "CHAT_ENQUIRY_TEMPLATE: ",
		"CHAT_LOOKUP_URL=abc":                                  "CHAT_LOOKUP_URL: ",
		"CRM_URL=https://x.example CRM_DIALECT=abc":            "CRM_DIALECT: ",
		"DATABASE_URL=mysql://x":                               "DATABASE_URL: ",
		"EVENTSTORE_URL=abc":                                   "EVENTSTORE_URL is not a connection string",
		"FEED_FROM=yesterday":                                  "--feed-from must be one of",
		"FEED_TOPIC=a*b":                                       "FEED_TOPIC: ",
		"FEED_URL=amqp://localhost":                            "FEED_URL: expected an address",
		"FEED_URL=nats://localhost?retention=no":               `FEED_URL: unknown option "retention"`,
		"FEED_URL=kafka://localhost?sasl=md5":                  "FEED_URL: sasl: ",
		"GATEWAY_ALLOWED_PHONES=abc":                           "GATEWAY_ALLOWED_PHONES: ",
		"GATEWAY_BASE_URL=https://x.example":                   "a gateway needs its API key",
		"GATEWAY_WEBHOOK_ADDRESSES=abc":                        "GATEWAY_WEBHOOK_ADDRESSES: ",
		"GATEWAY_WORKSPACE=abc":                                "GATEWAY_WORKSPACE: ",
		"IDP_ISSUER=https://x.example":                         "IDP_CLIENT_ID is missing",
		"LLM_BASE_URL=abc":                                     "LLM_BASE_URL",
		"LLM_TIMEOUT=-30s":                                     "LLM_TIMEOUT: ",
		"OTEL_EXPORTER_OTLP_ENDPOINT=abc":                      "OTEL_EXPORTER_OTLP_ENDPOINT: expected an address",
		"PARTNER_WEBHOOK_SECRET=abc":                           "PARTNER_WEBHOOK_SECRET: ",
		"REDIS_URL=abc":                                        "REDIS_URL: ",
		"SMTP_URL=abc":                                         "SMTP_URL",
	} {
		data := t.TempDir()
		cmd := apptest.Command(t, data, "serve").With("BAHI_ADDR=127.0.0.1:0", "DATABASE_URL=postgres://127.0.0.1:1/none")
		cmd.Env = append(cmd.Env, strings.Fields(settings)...)
		_, said, status := apptest.Execute(t, cmd)
		require.NotZero(t, status, settings)
		require.Contains(t, said, why, settings)
		made, err := os.ReadDir(data)
		require.NoError(t, err)
		require.Empty(t, made, settings)
	}
}

func TestAllThatIsWrongWithTheSettingsIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	cmd := apptest.Command(t, data, "serve")
	cmd.Env = append(cmd.Env, "BAHI_ADDR=nowhere", "BAHI_ADMIN_API_KEY=short", "BAHI_TIMEZONE=Mars", "BAHI_DB_CONNECTIONS=1",
		"BAHI_PUBLIC_URL=abc", "BAHI_STREAMS=-1",
		"BAHI_LIMIT_AUTH=abc", "GATEWAY_BASE_URL=https://x.example", "FEED_URL=kafka://localhost?sasl=md5", "SMTP_URL=smtp://localhost",
		"CHAT_BASE_URL=abc",
		"OTEL_EXPORTER_OTLP_ENDPOINT=abc", "BAHI_GATEWAY_TLS_CERT=none", "BAHI_AUDIT_EVERY=40s")
	_, said, status := apptest.Execute(t, cmd)
	require.NotZero(t, status)
	for _, why := range []string{
		"BAHI_ADDR: ", "BAHI_ADMIN_API_KEY: ", "BAHI_TIMEZONE: ", "BAHI_DB_CONNECTIONS: ", "BAHI_PUBLIC_URL: ", "BAHI_STREAMS: ",
		"BAHI_LIMIT_AUTH: ", "a gateway needs its API key",
		"FEED_URL: sasl: ", "SMTP_URL: from: the sender is missing", "CHAT_BASE_URL: ", "OTEL_EXPORTER_OTLP_ENDPOINT: ",
		"BAHI_GATEWAY_TLS_CERT and", "BAHI_AUDIT_EVERY: ",
	} {
		require.Contains(t, said, why)
	}
	require.NoDirExists(t, data)
}

// A server that took a port of its own is found by its data folder.
func TestCommandsFindTheServerWhateverItsAddress(t *testing.T) {
	t.Parallel()
	data, database := t.TempDir(), apptest.Database(t)
	bahi := func(args ...string) *apptest.Cmd {
		return apptest.Command(t, data, args...).With("DATABASE_URL=" + database)
	}
	p := apptest.Serve(t, bahi("serve"))
	p.Ready()
	health := func() (string, int) {
		_, said, status := apptest.Execute(t, bahi("health"))
		return said, status
	}
	said, status := health()
	require.Zero(t, status, said)
	addr, err := app.ServerAddr(t.Context(), data, "")
	require.NoError(t, err)
	require.Equal(t, p.URL, "http://"+addr)
	proxied := apptest.Program(t, data, "health").With("DATABASE_URL="+database, "HTTP_PROXY="+p.URL, "BAHI_ADDR=255.255.255.255:80")
	_, _, status = apptest.Execute(t, proxied)
	require.NotZero(t, status, "the proxy was called, not the server")
	shown, said, status := apptest.Execute(t, bahi("demo", "--events", "50"))
	require.Zero(t, status, said)
	require.Contains(t, shown, p.URL+"/app/")
	keys, said, status := apptest.Execute(t, bahi("apikey", "list"))
	require.Zero(t, status, said)
	require.Contains(t, keys, "PERMISSIONS")
	mail := p.Client().GET("/auth/verify-email?token=a.b-c").Status(200)
	require.Contains(t, mail.Text, `name="mailed" value="a.b-c"`)
	p.Stop()
	said, status = health()
	require.NotZero(t, status)
	require.Contains(t, said, "the server does not respond")
}
