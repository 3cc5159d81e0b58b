package domain

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// csvColumns are what the columns of an import fill in.
var csvColumns = map[string]func(row *ImportedNumber, cell string) error{
	"number":      func(row *ImportedNumber, cell string) error { return csvInteger(&row.Number, cell) },
	"last_number": func(row *ImportedNumber, cell string) error { return csvInteger(&row.LastNumber, cell) },
	"printed":     func(row *ImportedNumber, cell string) error { row.Printed = &cell; return nil },
	"date": func(row *ImportedNumber, cell string) error {
		row.Date = &Date{}
		return row.Date.UnmarshalGQL(cell)
	},
	"status": func(row *ImportedNumber, cell string) error {
		status := ImportedStatus(strings.ToUpper(cell))
		if _, known := stateOfImported[status]; !known {
			return errors.New("a status is ISSUED, VOID or SKIPPED")
		}
		row.Status = &status
		return nil
	},
	"reference": func(row *ImportedNumber, cell string) error { row.Reference = &cell; return nil },
	"reason":    func(row *ImportedNumber, cell string) error { row.Reason = &cell; return nil },
}

func csvInteger(field **int64, cell string) error {
	n, err := ParseInt64(cell)
	*field = &n
	return err
}

// ReadImportCSV reads the rows of an import from CSV (RFC 4180), in UTF-8, with or without a byte order
// mark. Its first line names the columns, in any order: number, last_number, printed, date, status,
// reference, reason. They are separated by commas, or, if the first line has none, by semicolons or
// tabs. An empty cell says nothing. Each fault goes to f, by its line.
func ReadImportCSV(text string, f *Faults) (rows []ImportRow) {
	whole := strings.TrimPrefix(text, "\ufeff")
	at := func(line int) []string { return Input("csv", strconv.Itoa(line)) }
	if !utf8.ValidString(whole) || strings.ContainsRune(whole, 0) {
		f.Add(at(1), "text", "the CSV is not UTF-8, or holds NUL characters")
		return nil
	}
	lines := csv.NewReader(strings.NewReader(whole))
	lines.FieldsPerRecord, lines.Comma = -1, separator(whole)
	var header []string
	for {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if broken := (*csv.ParseError)(nil); errors.As(err, &broken) {
			f.Add(at(broken.StartLine), "text", "not CSV: %v", broken.Err)
			return rows // where quotes are broken, what follows means nothing
		}
		line, _ := lines.FieldPos(0)
		if header == nil {
			if header = csvHeader(cells, at(line), f); header == nil {
				return nil
			}
			continue
		}
		if len(rows) == MaxImportRows {
			f.Add(at(line), "text", "an import has at most %d rows: split the file", MaxImportRows)
			return rows
		}
		before := f.count
		if row := csvRow(header, cells, at(line), f); f.count == before {
			rows = append(rows, row)
		}
	}
	if header == nil {
		f.Add(at(1), "text", "the first line names the columns")
	}
	return rows
}

// separator is what the first line separates its columns by.
func separator(text string) rune {
	first, _, _ := strings.Cut(text, "\n")
	for _, c := range ",;\t" {
		if strings.ContainsRune(first, c) {
			return c
		}
	}
	return ','
}

// csvHeader reads the names of the columns; nil if they cannot be.
func csvHeader(cells, at []string, f *Faults) []string {
	before, seen := f.count, map[string]bool{}
	for i, cell := range cells {
		cells[i] = strings.ToLower(strings.TrimSpace(cell))
		switch {
		case csvColumns[cells[i]] == nil:
			f.Add(at, "text", "there is no column %q: the columns are number, last_number, printed, date, status, reference, reason", cells[i])
		case seen[cells[i]]:
			f.Add(at, "text", "the column %s is there twice", cells[i])
		}
		seen[cells[i]] = true
	}
	if !seen["number"] && !seen["printed"] {
		f.Add(at, "text", "there is no column number, and no column printed")
	}
	if f.count > before {
		return nil
	}
	return cells
}

// csvRow reads a line.
func csvRow(header, cells, at []string, f *Faults) ImportRow {
	row := ImportRow{At: at, CSV: true}
	if len(cells) > len(header) {
		f.Add(at, "text", "the line has %d cells, and there are %d columns", len(cells), len(header))
		return row
	}
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		if cell == "" {
			continue
		}
		if err := csvColumns[header[i]](&row.ImportedNumber, cell); err != nil {
			f.Add(at, header[i], "%s", err.Error())
		}
	}
	return row
}
