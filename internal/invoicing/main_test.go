package invoicing_test

import (
	"os"
	"testing"

	"countersign/internal/invoicing"
	"countersign/internal/testdb"
)

// joining is how the tests' services join allocations: every test holds with it on, and off.
var joining invoicing.Joining

// TestMain runs the tests, or, in a process that a test has started, the part of it that is to run
// apart from it.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(runJob(job))
	}
	os.Exit(testdb.Main(m, func() { joining.Batch = 1 }))
}
