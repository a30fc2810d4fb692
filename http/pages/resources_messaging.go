package pages

import "net/url"

// messagingResources are the resources of messaging.
var messagingResources = []*resource{
	{
		word: "contacts", title: "Contacts", button: "Add a contact", about: "The people to whom you write.",
		list: "list-messaging-contacts", get: "get-messaging-contact", create: "add-messaging-contact",
		edit: "edit-messaging-contact", remove: "delete-messaging-contact",
		columns: []string{"name", "phone", "email", "optIn", "status", "listIds", "unread", "lastMessageAt"},
		actions: []action{{
			operation: "import-messaging-contacts", button: "Import a file", shows: true,
			about: "A CSV or Excel file with a row of names: name, phone, email, opt in, evidence of the consent.",
		}},
	},
	{
		word: "lists", title: "Contact lists", button: "Make a list", about: "Campaigns go to the contacts of a list.",
		list: "list-contact-lists", create: "create-contact-list", without: []string{"contactIds"},
		columns: []string{"name", "contactCount", "createdAt"}, leads: Path + "/list/contacts?listId=",
	},
	{
		word: "templates", title: "Message templates", about: "Texts that the network has approved. Campaigns send them.",
		list: "list-templates", columns: []string{"name", "language", "category", "status", "channelId"}, fixed: url.Values{},
	},
}
