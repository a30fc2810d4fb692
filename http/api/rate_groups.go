package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bahi/http/api/ratelimit"
)

// Limits are the limits by group name, see [Op.Limit].
type Limits map[string]ratelimit.Limit

// Operations do not name these groups.
const (
	GroupAPIKeys = "api_keys"               // all requests of one API key
	GroupRefused = "refused_authentication" // invalid credentials from one address
	GroupWrong   = "wrong_passwords"        // of one account, from any address
	GroupAgain   = "sign_in_again"          // attempts on one account after too many wrong passwords
	GroupPages   = "pages"                  // pages of a browser: the reads of one page count once
)

// DefaultLimits returns all groups with the limits of SPEC.txt ("Limits") and of CONTRACT.md D45 to D47.
func DefaultLimits() Limits {
	limits := Limits{GroupAPIKeys: {}}
	for group, perMinute := range map[string]int{
		// SPEC.txt
		"auth":  20, // one counter for the whole group
		"users": 120, "users_picture": 10, "users_delete_request": 20,
		"enquiry_create": 60, "enquiry_verify_chat": 60, "enquiry_general": 120,
		"contact_create": 60, "contact_general": 120,
		"catalog_list_search": 120, "catalog_create_update": 120, "catalog_bulk": 10,
		// D45
		"company_read": 120, "company_write": 60, "company_check_domain": 30, "catalog_general": 120,
		// D46
		"ledger_general": 300, "ledger_khata_upload": 10, "ledger_pdf": 30,
		// Ours: statements by the links of confirmations, which a chat network fetches for each message.
		"ledger_shared_statement": 1200,
		// D47
		"messaging_general": 120, "chat_send": 60, "campaign_send": 10, "bot_file": 20, "webhooks": 1200,
		// Ours: API keys, workspaces and their members.
		"marketplace_general": 120,
		// Ours: visitors of pages with the chat widget, by address, and each visitor's messages.
		"web_chat": 120, "web_chat_session": 20, "web_chat_message": 20,
		// Ours: the log, its proofs and the trail.
		"audit_general": 120,
		// GroupRefused allows an office with expired tokens behind one address, and keeps a dictionary attack slow.
		GroupRefused: 120, GroupPages: 300,
	} {
		limits[group] = ratelimit.Limit{Requests: perMinute, Per: time.Minute}
	}
	// Ours: changes of a user's address. Each change mails an address of the user's choice.
	limits["users_email"] = ratelimit.Limit{Requests: 5, Per: time.Hour}
	// R11
	limits[GroupWrong], limits[GroupAgain] = ratelimit.Limit{Requests: 10, Per: 15 * time.Minute},
		ratelimit.Limit{Requests: 1, Per: time.Minute}
	return limits
}

// limitSetting is the prefix of the settings. The group follows, as in BAHI_LIMIT_AUTH=20/1m.
const limitSetting = "BAHI_LIMIT_"

// ParseLimits returns the limits with the changes in the environment, which has NAME=value pairs as in os.Environ. It ignores other names.
// It returns an error for an unknown group, because a misspelt setting would have no effect.
func ParseLimits(environ []string) (Limits, error) {
	limits := DefaultLimits()
	var wrong []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		group, found := strings.CutPrefix(name, limitSetting)
		if !found {
			continue
		}
		group = strings.ToLower(group)
		if _, known := limits[group]; !known {
			wrong = append(wrong, fmt.Errorf("%s: unknown limit; known are %s", name, strings.Join(slices.Sorted(maps.Keys(limits)), ", ")))
			continue
		}
		limit, err := ratelimit.Parse(value)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		limits[group] = limit
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return limits, nil
}
