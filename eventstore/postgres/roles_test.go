package postgres

const roleVariable = "BAHI_TEST_ROLE"

// play is filled by the test of many processes.
func play(string) int { return 1 }
