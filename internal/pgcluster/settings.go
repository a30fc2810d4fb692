package pgcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings returns Postgres's settings for a ledger on two cores. Other settings keep Postgres's defaults.
func settings(ephemeral bool) map[string]string {
	s := map[string]string{
		// An acknowledged write is on disk. These are the defaults; they are explicit because everything depends on them.
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",

		"max_connections":      "400",
		"shared_buffers":       "256MB",
		"effective_cache_size": "1GB",
		"work_mem":             "16MB",
		"maintenance_work_mem": "128MB",
		"random_page_cost":     "1.1",
		"jit":                  "off", // Our queries are short: compiling one costs more than running it.

		// replica, not minimal: pg_basebackup needs it to copy a running cluster. minimal would keep a rebuild's COPY out of the write-ahead log.
		// But then no operator could back up a running cluster.
		"wal_level":       "replica",
		"max_wal_senders": "4",
		"max_wal_size":    "2GB",
		"min_wal_size":    "256MB",
		"wal_buffers":     "16MB",
		"wal_compression": "off", // Cores are scarce.
		// An old file of the write-ahead log is deleted, not reused with its content, which may be of an erased person.
		"wal_recycle": "off",

		// A newly filled table is planned for as a small one until it is analysed: seconds, not a minute.
		"autovacuum_naptime": "10s",

		"checkpoint_timeout":           "15min",
		"checkpoint_completion_target": "0.9",

		// A file per weekday, overwritten after a week: the log cannot fill the disk.
		"logging_collector":        "on",
		"log_filename":             "postgres-%a.log",
		"log_truncate_on_rotation": "on",
		"log_rotation_age":         "1d",
		"log_rotation_size":        "0",
		"log_file_mode":            "0600",
		"log_line_prefix":          "%m [%p] ",
		"log_lock_waits":           "on",
		"log_checkpoints":          "off",
		// Progress of crash recovery, for the operator who waits for it.
		"log_startup_progress_interval": "1s",
		// Logs contain ids and kinds, never a client's data: no statements, no parameters, no DETAIL with the values of a row.
		"log_min_error_statement":           "panic",
		"log_error_verbosity":               "terse",
		"log_parameter_max_length":          "0",
		"log_parameter_max_length_on_error": "0",

		// GMT is UTC under the only name that Postgres knows without a time zone database, which a bare machine lacks.
		"timezone":     "GMT",
		"log_timezone": "GMT",
		"lc_messages":  "C",
	}
	if ephemeral {
		maps.Copy(s, map[string]string{
			"fsync":              "off",
			"synchronous_commit": "off",
			"full_page_writes":   "off",
			"max_connections":    "1000",
			"shared_buffers":     "128MB",
			"wal_level":          "minimal",
			"max_wal_senders":    "0",
		})
	}
	return s
}

// ours returns the settings that keep the cluster private and findable.
func ours(f folder, socketDir string) map[string]string {
	return map[string]string{
		"listen_addresses":        "",
		"port":                    port,
		"unix_socket_directories": socketDir,
		"unix_socket_permissions": "0700",
		"log_destination":         "stderr",
		"log_directory":           f.logs(),
		"cluster_name":            clusterName(f),
	}
}

// clusterName returns the name in the title of every process of the cluster. endOrphans finds them by it.
func clusterName(f folder) string {
	sum := sha256.Sum256([]byte(f.root))
	return "bahi-" + hex.EncodeToString(sum[:8])
}

// triedOut is initdb's configuration. Ours includes it first, because initdb probes the machine: without a writable /dev/shm, for example,
// it chooses another kind of shared memory.
const triedOut = "initdb.conf"

// configuration returns the text of postgresql.conf. Equal settings give equal texts, so the text identifies a running cluster's settings.
func configuration(f folder, socketDir string, ephemeral bool) string {
	all := settings(ephemeral)
	maps.Copy(all, ours(f, socketDir))
	var b strings.Builder
	b.WriteString("# Written by bahi at each start. Your own settings: ALTER SYSTEM SET ..., which go into postgresql.auto.conf.\n")
	b.WriteString("include_if_exists '" + triedOut + "'\n")
	quote := strings.NewReplacer(`\`, `\\`, `'`, `''`, "\n", `\n`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, quote.Replace(all[name]))
	}
	return b.String()
}

// authentication returns the texts of pg_hba.conf and pg_ident.conf. A client must connect through the socket and be the owner or root, as
// the kernel reports it. All other clients are refused, whatever the value of listen_addresses.
func authentication(o owner) (hba, ident string) {
	hba = "# Written by bahi at each start.\n" +
		"local all all peer map=bahi\n" + //nolint:dupword // A database and a user.
		"local replication all peer map=bahi\n"
	name := strings.ReplaceAll(o.name, `"`, `""`)
	ident = "# Written by bahi at each start.\nbahi \"" + name + "\" " + superuser + "\nbahi root " + superuser + "\n"
	return hba, ident
}
