package metering_test

import (
	"os"
	"testing"

	"countersign/internal/testdb"
)

// TestMain runs the tests, or, in a process that a test has started, the part of it that is to be
// killed.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(runJob(job))
	}
	os.Exit(testdb.Main(m))
}
