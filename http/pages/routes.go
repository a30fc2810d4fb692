package pages

import (
	"net/http"
	"slices"
)

// routes registers all pages.
func (p *Pages) routes() {
	p.mux.HandleFunc("GET "+Path+"/assets/{file}", p.asset)
	p.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, false, func(v *visit) page { return v.deny(errNoPage) })
	})
	p.verifyRoutes(builtVerifier)
	for pattern, answer := range map[string]func(*visit) page{
		"GET /app/sign-in":          (*visit).signInPage,
		"POST /app/sign-in":         (*visit).signIn,
		"POST /app/sign-out":        (*visit).signOut,
		"POST /app/look":            (*visit).look,
		"GET /app/sign-in/provider": (*visit).toProvider,
		"GET " + callback:           (*visit).fromProvider,
		"POST " + callback:          (*visit).fromProvider,
		"GET /docs":                 (*visit).docs,
		"GET /docs/guides/{name}":   (*visit).docsGuide,
		"GET /docs/{operation}":     (*visit).docsOperation,
		"POST /docs/{operation}":    (*visit).tryOperation,
		"GET /enquiries":            (*visit).toEnquiries,
		"GET /enquiries/{id}":       (*visit).toEnquiries,
	} {
		p.open(pattern, answer)
	}
	for _, d := range doors {
		answer := func(v *visit) page { return v.door(d) }
		p.open("GET "+d.Path, answer)
		p.open("POST "+d.Path, answer)
	}
	for pattern, answer := range map[string]func(*visit) page{
		"GET /app/{$}":                            (*visit).today,
		"POST /app/workspace":                     (*visit).chooseWorkspace,
		"GET /app/find":                           (*visit).find,
		"GET /app/accounts":                       (*visit).accounts,
		"POST /app/accounts":                      (*visit).openAccount,
		"GET /app/accounts/{kind}/{id}/statement": (*visit).statement,
		"GET /app/rows/{row}":                     (*visit).anyRow,
		"GET /app/daybook":                        (*visit).daybook,
		"GET /app/trial-balance":                  (*visit).trialBalance,
		"GET /app/audit":                          (*visit).trail,
		"GET /app/drafts/{id}":                    (*visit).draft,
		"POST /app/drafts/{id}":                   (*visit).editDraft,
		"POST /app/drafts/{id}/delete":            (*visit).deleteDraft,
		"GET /app/khata":                          (*visit).khatas,
		"POST /app/khata":                         (*visit).uploadKhata,
		"GET /app/khata/{id}":                     (*visit).khata,
		"POST /app/khata/{id}":                    (*visit).checkKhata,
		"GET /app/inbox":                          (*visit).inbox,
		"GET /app/inbox/{contact}":                (*visit).talk,
		"POST /app/inbox/{contact}":               (*visit).editContact,
		"POST /app/inbox/{contact}/messages":      (*visit).sendMessage,
		"POST /app/inbox/{contact}/read":          (*visit).readMessages,
		"GET /app/list/channels/{id}/try":         (*visit).tryWidget,
		"GET /app/operate":                        (*visit).operate,
		"GET /contacts/{id}":                      (*visit).toContact,
	} {
		p.member(pattern, answer)
	}
	others := []*resource{
		orderResource(), draftResource(), transferResource(), partiesResource(), confirmationResource(), enquiryResource(),
	}
	for _, k := range kinds {
		others = append(others, accountResource(k.Value))
	}
	for _, r := range slices.Concat(resources, others, settingsResources(), goodsResources(), operateResources()) {
		p.resource(r)
	}
}
