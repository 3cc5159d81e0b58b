package invoicing_test

import (
	"flag"
	"os"
	"testing"

	"countersign/internal/invoicing"
	"countersign/internal/testdb"
)

// joining is how the tests' services join allocations: every test of allocation holds with it on, and
// off.
var joining invoicing.Joining

// ofAllocation are the tests of allocation.
const ofAllocation = `^Test(Case0[1-7]|Case1[1-3]|AKey|AnAnswerThatIsLostTakes|ALostAnswer|AClient|Sixteen|TheDay|ACounter|AnInvoice|AnAllocation|Series|TheLock|What)`

// TestMain runs the tests, or, in a process that a test has started, the part of it that is to run
// apart from it.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(runJob(job))
	}
	os.Exit(testdb.Main(m, func() {
		joining.Batch = 1
		if run := flag.Lookup("test.run"); run.Value.String() == "" {
			_ = run.Value.Set(ofAllocation)
		}
		_ = flag.Lookup("test.bench").Value.Set("") // a bench runs once
	}))
}
