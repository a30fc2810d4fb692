package apptest

const Locked = "Books are locked through 2025-03-31"
