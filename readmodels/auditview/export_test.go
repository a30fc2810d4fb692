package auditview

// EventsOfAccount is the SQL that selects the events of a statement.
var EventsOfAccount = eventsOf(accountStreams)
