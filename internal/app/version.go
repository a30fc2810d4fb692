package app

// Version is set by the linker.
var Version = "development"
