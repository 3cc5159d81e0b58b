package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// into is what the imports of these tests are checked against: a series that prints Y-2026-00001.
var into = Importing{
	Rule:   SeriesRule{Code: "Y", Format: "{CODE}-{YYYY}-{N:5}", Reset: ResetYearly, FiscalYearStart: 1, MaxLength: 12, AllowedCharacters: CharactersPlain, Capacity: 1},
	Period: NewDate(2026, 1, 1), Today: NewDate(2026, 6, 15), Reason: "from the old system",
}

// imported reads a CSV and says what came of it: its entries, or its faults as "line column".
func imported(im Importing, text string) string {
	f := &Faults{}
	entries := im.Entries(ReadImportCSV(text, f), f)
	var said []string
	for _, user := range UserErrors(f.Err(Input("csv"))) {
		said = append(said, strings.Join(user.GetPath()[2:], " "))
	}
	if f.count > 0 {
		return "at " + strings.Join(said, ", ")
	}
	for _, e := range entries {
		line := fmt.Sprintf("%s %s", e.NumberRange, e.State)
		if e.IssueDate != nil {
			line += " " + e.IssueDate.String()
		}
		if e.Reference != nil {
			line += fmt.Sprintf(" %q", *e.Reference)
		}
		if e.Reason != im.Reason {
			line += fmt.Sprintf(" because %q", e.Reason)
		}
		said = append(said, line)
	}
	return strings.Join(said, ", ")
}

// What an import's CSV says, however it is written, and what is wrong with it, line by line.
func TestImportCSV(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"the plainest":          {"number\n1\n2\n3\n", "1 to 3 IMPORTED"},
		"no line end":           {"number\n1", "1 IMPORTED"},
		"a byte order mark":     {"\ufeffnumber\n1\n", "1 IMPORTED"},
		"CRLF":                  {"number,status\r\n1,ISSUED\r\n2,void\r\n", "1 IMPORTED, 2 VOIDED_ELSEWHERE"},
		"semicolons":            {"number;reference\n1;a,b\n", `1 IMPORTED "a,b"`},
		"tabs":                  {"number\treference\n1\ta\n", `1 IMPORTED "a"`},
		"quotes":                {"number,reason\n1,\"he said \"\"no\"\",\ntwice\"\n", `1 IMPORTED because "he said \"no\",\ntwice"`},
		"columns in any order":  {" Status , NUMBER \nskipped,4\n", "4 SKIPPED"},
		"empty cells and lines": {"number,date,status\n1,,\n\n2,,\n", "1 to 2 IMPORTED"},
		"short lines":           {"number,date\n1\n2\n", "1 to 2 IMPORTED"},
		"out of order":          {"number\n3\n1\n2\n", "1 to 3 IMPORTED"},
		"a run":                 {"number,last_number,status,reason\n1,4710,SKIPPED,in the archive\n4711,,,\n", `1 to 4710 SKIPPED because "in the archive", 4711 IMPORTED`},
		"printed":               {"printed\nY-2026-00007\nY-2026-00008\n", "7 to 8 IMPORTED"},
		"printed and number":    {"printed,number\nY-2026-00007,7\n", "7 IMPORTED"},
		"dates apart":           {"number,date\n1,2026-01-01\n2,2026-01-01\n3,2026-06-15\n", "1 to 2 IMPORTED 2026-01-01, 3 IMPORTED 2026-06-15"},

		"nothing":                  {"", "at 1 text"},
		"only a mark":              {"\ufeff", "at 1 text"},
		"no column of numbers":     {"date\n2026-01-01\n", "at 1 text"},
		"an unknown column":        {"number,total\n1,2\n", "at 1 text"},
		"a column twice":           {"number,Number\n1,2\n", "at 1 text"},
		"no header":                {"1\n2\n", "at 1 text, at 1 text"},
		"too many cells":           {"number\n1,2\n", "at 2 text"},
		"an open quote":            {"number,reason\n1,x\n2,\"x\n", "at 3 text"},
		"a quote in a cell":        {"number,reason\n1,a\"b\n", "at 2 text"},
		"not UTF-8":                {"number\n1\xff\n", "at 1 text"},
		"NUL":                      {"number\n1\x00\n", "at 1 text"},
		"no number":                {"number,date\n,2026-01-01\n", "at 2 number"},
		"not a number":             {"number\nx\n1.5\n-0\n+1\n01\n1e3\n9223372036854775808\n", "at 2 number, at 3 number, at 4 number, at 5 number, at 6 number, at 7 number, at 8 number"},
		"out of range":             {"number\n0\n-1\n100000\n", "at 2 number, at 3 number, at 4 number"},
		"a run out of range":       {"number,last_number\n1,100000\n", "at 2 number"},
		"a run backwards":          {"number,last_number\n5,4\n", "at 2 last_number"},
		"a run with a reference":   {"number,last_number,reference\n5,6,x\n", "at 2 reference"},
		"a number twice":           {"number\n7\n8\n7\n", "at 4 number"},
		"a number in a run":        {"number,last_number\n1,9\n5,\n10,\n", "at 3 number"},
		"printed otherwise":        {"printed\nY-2026-7\nINV-7\nY-2025-00007\ny-2026-00007\nY-2026-000007\nY-2026-\n\"Y-2026-00007 x\"\n", "at 2 printed, at 3 printed, at 4 printed, at 5 printed, at 6 printed, at 7 printed, at 8 printed"},
		"printed as another":       {"printed,number\nY-2026-00007,8\n", "at 2 printed"},
		"a status that is none":    {"number,status\n1,PAID\n", "at 2 status"},
		"a date that is none":      {"number,date\n1,2026-02-30\n2,1.2.2026\n", "at 2 date, at 3 date"},
		"a date out of the period": {"number,date\n1,2025-12-31\n", "at 2 date"},
		"a date in the future":     {"number,date\n1,2026-06-16\n", "at 2 date"},
		"a long reference":         {"number,reference\n1," + strings.Repeat("x", 501) + "\n", "at 2 reference"},
		"several faults of a row":  {"number,date,reference\n0,2027-01-01," + strings.Repeat("x", 501) + "\n", "at 2 reference, at 2 date, at 2 number"},
	} {
		want := c.want
		if strings.HasPrefix(want, "at ") {
			want = "at " + strings.ReplaceAll(strings.TrimPrefix(want, "at "), "at ", "")
		}
		if got := imported(into, c.text); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A megabyte of faults is told in bounded form: the first hundred, and how many more there are.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	text := "number\n" + strings.Repeat("0\n", 1<<19)
	f := &Faults{}
	into.Entries(ReadImportCSV(text, f), f)
	err := f.Err(Input("csv"))
	users := UserErrors(err)
	if len(users) != 101 || !strings.Contains(users[100].GetMessage(), "more faults are not told") || f.count != MaxImportRows+1 {
		t.Errorf("%d faults are told of %d; the last: %v", len(users), f.count, users[len(users)-1])
	}
	for _, user := range users {
		if user.GetCode() != CodeInvalidRow || !errors.As(err, new(*Refusal)) {
			t.Fatalf("a fault is %v", user)
		}
	}
}

// A printed number that depends on a day which is not given is not guessed.
func TestAPrintedNumberMayNeedItsDay(t *testing.T) {
	t.Parallel()
	daily := into
	daily.Rule.Format, daily.Rule.MaxLength = "{YYYY}{MM}{DD}-{N}", 20
	for text, want := range map[string]string{
		"printed\n20260301-7\n":                 "at 2 date",
		"printed,date\n20260301-7,2026-03-01\n": "7 IMPORTED 2026-03-01",
		"printed,date\n20260301-7,2026-03-02\n": "at 2 printed",
	} {
		if got := imported(daily, text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	never := SeriesRule{Code: "N", Format: "{CODE}-{N}", Reset: ResetNever, FiscalYearStart: 1, MaxLength: 20}
	dated := never
	dated.Format = "{YY}-{N}"
	if got := [3]string{never.PrintedIn(UnusedPeriod, nil, 7), dated.PrintedIn(UnusedPeriod, nil, 7), daily.Rule.PrintedIn(daily.Period, nil, 7)}; got != [3]string{"N-7", "", ""} {
		t.Errorf("without a day they print %q", got)
	}
}

// What a series prints is read as that number and as no other.
func TestParseReadsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := Numbering{
			Prefix: rapid.StringMatching(`[A-Z0-9/-]{0,6}`).Draw(t, "prefix"), Suffix: rapid.StringMatching(`[A-Z0-9/-]{0,6}`).Draw(t, "suffix"),
			Width: rapid.Int32Range(1, 18).Draw(t, "width"),
		}
		number := rapid.Int64Range(1, 999_999_999_999_999_999).Draw(t, "number")
		if got, ok := n.Parse(n.Print(number)); !ok || got != number {
			t.Fatalf("%s is read as %d, %v", n.Print(number), got, ok)
		}
		text := rapid.StringMatching(`[A-Z0-9/+ -]{0,20}`).Draw(t, "text")
		if got, ok := n.Parse(text); ok && n.Print(got) != text {
			t.Fatalf("%q is read as %d, which prints %q", text, got, n.Print(got))
		}
	})
}

// FuzzImportCSV: whatever is read, the entries are in order, do not overlap, lie within the series and say what the rows
// did; or there is a fault, at a line of the text.
func FuzzImportCSV(f *testing.F) {
	for _, text := range []string{
		"number\n1\n", "\ufeffnumber;status\r\n1;void\r\n", "printed,date\nY-2026-00007,2026-01-01\n", "number,last_number,reason\n1,5,\"a\nb\"\n6,,\n3,,\n",
		"number,reason\n1,\"x\n", "number\n\"1\"\n\"\"\n", "\"number\"\n1\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faults := &Faults{}
		rows := ReadImportCSV(text, faults)
		entries := into.Entries(rows, faults)
		if faults.count > 0 {
			for _, user := range UserErrors(faults.Err(Input("csv"))) {
				if user.GetCode() != CodeInvalidRow || !utf8.ValidString(user.GetMessage()) && utf8.ValidString(text) || len(user.GetMessage()) > 4*len(text)+400 {
					t.Fatalf("a fault is %v", user)
				}
			}
			return
		}
		var last, numbers int64
		for _, e := range entries {
			if e.First <= last || e.Last < e.First || e.Last > into.Rule.MaxNumber() || e.Reason == "" {
				t.Fatalf("the entries are %+v", entries)
			}
			last, numbers = e.Last, numbers+e.Count()
		}
		var asked int64
		for _, row := range rows {
			if asked++; row.LastNumber != nil {
				first := row.Number
				if first == nil {
					n, _ := into.Rule.On(into.Period).Parse(*row.Printed)
					first = &n
				}
				asked += *row.LastNumber - *first
			}
		}
		if asked != numbers {
			t.Fatalf("%d numbers were asked for, the entries have %d", asked, numbers)
		}
	})
}

// Faults of a list are told by their place in it.
func TestFaultsOfAList(t *testing.T) {
	t.Parallel()
	f := &Faults{}
	var rows []ImportRow
	for i, n := range []int64{5, 5, 0} {
		rows = append(rows, ImportRow{ImportedNumber: ImportedNumber{Number: &n}, At: Input("numbers", fmt.Sprint(i))})
	}
	rows = append(rows, ImportRow{ImportedNumber: ImportedNumber{Number: new(int64(9)), LastNumber: new(int64(8))}, At: Input("numbers", "3")})
	if entries := into.Entries(rows, f); len(entries) == 0 {
		t.Error("the good rows are lost")
	}
	var at []string
	for _, user := range UserErrors(f.Err(Input("numbers"))) {
		at = append(at, strings.Join(user.GetPath(), " "))
	}
	if want := []string{"input numbers 2 number", "input numbers 3 lastNumber", "input numbers 1 number"}; !slices.Equal(at, want) {
		t.Errorf("the faults are at %v, want %v", at, want)
	}
}
