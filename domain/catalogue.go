// Package domain lists every kind of stream of the system.
package domain

import (
	"bahi/domain/access/apikey"
	"bahi/domain/access/claim"
	"bahi/domain/access/plan"
	"bahi/domain/access/session"
	"bahi/domain/access/user"
	"bahi/domain/access/workspace"
	"bahi/domain/audit"
	"bahi/domain/event"
	"bahi/domain/ledger"
	"bahi/domain/ledger/bookslock"
	"bahi/domain/ledger/khata"
	"bahi/domain/ledger/order"
	"bahi/domain/ledger/orderdraft"
	"bahi/domain/ledger/takada"
	"bahi/domain/marketplace/company"
	"bahi/domain/marketplace/companycontact"
	"bahi/domain/marketplace/enquiry"
	"bahi/domain/marketplace/product"
	"bahi/domain/messaging/bot"
	"bahi/domain/messaging/botanswer"
	"bahi/domain/messaging/botsource"
	"bahi/domain/messaging/botwebhook"
	"bahi/domain/messaging/campaign"
	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/contact"
	"bahi/domain/messaging/contactlist"
	"bahi/domain/messaging/message"
	"bahi/domain/messaging/template"
	"bahi/domain/number"
	"bahi/domain/request"
	"bahi/domain/subscriber"
)

// Catalogue has every Kind, once.
var Catalogue = event.NewCatalogue(append([]event.AnyKind{
	apikey.Kind,
	audit.Kind,
	bookslock.Kind,
	bot.Kind,
	botanswer.Kind,
	botsource.Kind,
	botsource.Pages.Kind,
	botwebhook.Kind,
	campaign.Blocks,
	campaign.Kind,
	channel.Identities.Kind,
	channel.Kind,
	claim.Email.Kind,
	claim.Identity.Kind,
	contact.Kind,
	contact.Phones.Kind,
	contact.Senders.Kind,
	contactlist.Kind,
	subscriber.Kind,
	khata.Kind,
	company.Domains.Kind,
	company.Kind,
	company.Slugs.Kind,
	enquiry.BuyerKind,
	enquiry.Kind,
	enquiry.NotificationKind,
	companycontact.Kind,
	companycontact.NoticeKind,
	companycontact.PrimaryKind,
	message.Kind,
	message.ThreadKind,
	template.Kind,
	number.Kind,
	order.Kind,
	order.TakadasKind,
	product.Batches,
	product.Kind,
	product.SKUs.Kind,
	plan.Customers.Kind,
	plan.Kind,
	orderdraft.Kind,
	orderdraft.SenderKind,
	request.Kind,
	session.Kind,
	takada.Kind,
	user.Kind,
	workspace.Kind,
}, ledger.Kinds()...)...)
