package messaginghttp

import (
	"context"
	"time"

	"bahi/commands/messagingcmd"
	"bahi/commands/spreadsheet"
	"bahi/http/api"
)

// maxImport is the maximum size of a file of contacts in bytes (CONTRACT.md D49).
const maxImport = 10 << 20

// importTimeout is the timeout of an import, sufficient for the largest file on a busy machine.
const importTimeout = 5 * time.Minute

// Import registers the import of contacts from files.
func (r *Routes) Import() {
	op := contactOp("import-messaging-contacts", "POST", "/import", "Import contacts from a CSV or Excel file. "+
		"Maximum 50,000 rows. The response names faulty rows. "+
		"After an interruption, the same Idempotency-Key continues the import.")
	op.Status, op.MaxBody, op.AnyField, op.EmptyFile, op.Expensive, op.Timeout = 200, maxImport, true, spreadsheet.ErrFormat, true,
		importTimeout
	api.Handle(r.API, op, func(ctx context.Context, in *struct{ File api.File }) (*api.Body[spreadsheet.ImportResult], error) {
		out, err := messagingcmd.ImportContacts(ctx, r.Commands, api.Request(ctx), in.File.Open())
		if err == nil && out.Position != 0 {
			api.SetWriteHeaders(ctx, out.Position, out.Replayed)
		}
		return api.Answer(out.Result, err)
	})
}
