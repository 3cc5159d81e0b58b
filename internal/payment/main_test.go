package payment_test

import (
	"os"
	"testing"

	"countersign/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }
