package pgcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings are Postgres's, for two cores and a ledger. A setting that is absent keeps Postgres's default.
func settings(ephemeral bool) map[string]string {
	s := map[string]string{
		// What was answered is on the disk. These are the defaults; they stand here because everything rests on them.
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",

		"max_connections":      "200",
		"shared_buffers":       "256MB",
		"effective_cache_size": "1GB",
		"work_mem":             "16MB",
		"maintenance_work_mem": "128MB",
		"random_page_cost":     "1.1",
		"jit":                  "off", // Our queries are short: compiling one costs more than running it.

		// replica, not minimal: pg_basebackup copies a running cluster only so. minimal would save the log of COPY into
		// a table made in the same transaction, that is a part of a rebuild, and cost every operator the online backup.
		"wal_level":       "replica",
		"max_wal_senders": "4",
		"max_wal_size":    "2GB",
		"min_wal_size":    "256MB",
		"wal_buffers":     "16MB",
		"wal_compression": "off", // Cores are what we are short of.
		// An old file of the log is deleted, not given a new name with its content: that may be of a person who was erased.
		"wal_recycle": "off",

		"checkpoint_timeout":           "15min",
		"checkpoint_completion_target": "0.9",

		// A file per weekday, begun anew after a week: the log never fills the disk of somebody who never looks at it.
		"logging_collector":        "on",
		"log_filename":             "postgres-%a.log",
		"log_truncate_on_rotation": "on",
		"log_rotation_age":         "1d",
		"log_rotation_size":        "0",
		"log_file_mode":            "0600",
		"log_line_prefix":          "%m [%p] ",
		"log_lock_waits":           "on",
		"log_checkpoints":          "off",
		// How far crash recovery has come, for whoever waits for it.
		"log_startup_progress_interval": "1s",
		// Logs hold ids and kinds, never what a client sent: no statements, no parameters, no DETAIL with the values of a row.
		"log_min_error_statement":           "panic",
		"log_error_verbosity":               "terse",
		"log_parameter_max_length":          "0",
		"log_parameter_max_length_on_error": "0",

		// GMT is UTC under the one name that Postgres knows without a time zone database, which a bare machine lacks.
		"timezone":     "GMT",
		"log_timezone": "GMT",
		"lc_messages":  "C",
	}
	if ephemeral {
		maps.Copy(s, map[string]string{
			"fsync":              "off",
			"synchronous_commit": "off",
			"full_page_writes":   "off",
			"max_connections":    "300",
			"shared_buffers":     "128MB",
			"wal_level":          "minimal",
			"max_wal_senders":    "0",
		})
	}
	return s
}

// ours are the settings that keep the cluster private and findable; nobody overrides them.
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

// clusterName is in the title of every process of the cluster. By it the ones are found that outlive a killed postmaster.
func clusterName(f folder) string {
	sum := sha256.Sum256([]byte(f.root))
	return "bahi-" + hex.EncodeToString(sum[:8])
}

// triedOut is the configuration that initdb wrote. It stands before ours because initdb tries out what the machine can do: without a
// /dev/shm that Postgres's user may write to, for one, it chooses another kind of shared memory.
const triedOut = "initdb.conf"

// configuration is the text of postgresql.conf. Equal settings give equal text: that is how a running cluster is known to have them.
func configuration(f folder, socketDir string, ephemeral bool, wanted map[string]string) (string, error) {
	all := settings(ephemeral)
	fixed := ours(f, socketDir)
	for name, value := range wanted {
		name = strings.ToLower(name)
		if _, taken := fixed[name]; taken {
			return "", fmt.Errorf("the setting %s of the private cluster is not for changing", name)
		}
		all[name] = value
	}
	maps.Copy(all, fixed)

	var b strings.Builder
	b.WriteString("# Written by bahi at each start. Your own settings: ALTER SYSTEM SET ..., which go into postgresql.auto.conf.\n")
	b.WriteString("include_if_exists '" + triedOut + "'\n")
	quote := strings.NewReplacer(`\`, `\\`, `'`, `''`, "\n", `\n`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, quote.Replace(all[name]))
	}
	return b.String(), nil
}

// authentication is the text of pg_hba.conf and of pg_ident.conf: whoever reaches the socket must also be, as the kernel
// sees it, the owner or root. Nothing else is let in, whatever listen_addresses says.
func authentication(o owner) (hba, ident string) {
	hba = "# Written by bahi at each start.\n" +
		"local all all peer map=bahi\n" + //nolint:dupword // A database and a user.
		"local replication all peer map=bahi\n"
	name := strings.ReplaceAll(o.name, `"`, `""`)
	ident = "# Written by bahi at each start.\nbahi \"" + name + "\" " + superuser + "\nbahi root " + superuser + "\n"
	return hba, ident
}
