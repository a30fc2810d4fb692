// Package providers has one folder for each kind of external service: mail, blobs, identity, chat networks, language models, brokers.
//
// An adapter keeps the service's wire structs, its authentication and its signature checks in its own package. Of Bahi's packages it
// imports only domain. The code that uses it declares the interface, with the one or two methods that it needs; package app connects both.
// So a change of a service changes one folder.
//
// Each kind has an embedded default, which works without settings: a folder, a sandbox, rules instead of a model. The adapter and the
// default pass the same suite, against real servers on loopback. There are no mocks: a mock repeats its author's belief about the service.
//
// All outgoing requests use package egress, which refuses private addresses unless the operator allows them.
package providers
