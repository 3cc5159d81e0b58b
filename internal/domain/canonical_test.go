package domain

import (
	"encoding/json"
	"testing"
)

// A decimal counts in an operation's canonical input, by its value and not by how it is written.
func TestDecimalsAreCanonical(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{"0.5": `"0.5"`, "0.50": `"0.5"`, "0.6": `"0.6"`, "100": `"100"`, "0": `"0"`, "0.077": `"0.077"`} {
		var d Decimal
		if err := d.UnmarshalGQL(written); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(struct{ D Decimal }{d}); err != nil || string(got) != `{"D":`+want+`}` {
			t.Errorf("%s is canonically %s, %v; want %s", written, got, err, want)
		}
	}
}
