package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// report is everything that was measured.
type report struct {
	Machine       string      `json:"machine"`
	PostgreSQL    string      `json:"postgresql"`
	Seconds       float64     `json:"secondsEach"`
	Repeats       int         `json:"repeats"`
	Connections   []int       `json:"connections"`
	Rows          []*row      `json:"allocation"`
	Floor         result      `json:"requestThatDoesNothingAlone"`
	Large         large       `json:"largeTable"`
	Orders        result      `json:"orders"`
	Revocations   revocations `json:"revocations"`
	PeakMemoryMiB float64     `json:"serverPeakMemoryMiB"`
}

// row is one way to number invoices, under one load.
type row struct {
	Way         string `json:"way"`
	Series      int    `json:"series"`
	Connections int    `json:"connections"`
	result             // medians
	rounds      []result
}

// large compares a small table with a large one.
type large struct {
	Few   int    `json:"few"`
	Many  int    `json:"many"`
	Small result `json:"atFew"`
	Large result `json:"atMany"`
}

func (r *report) add(way string, series, connections int, got result) {
	found := r.find(way, series, connections)
	if found == nil {
		found = &row{Way: way, Series: series, Connections: connections}
		r.Rows = append(r.Rows, found)
	}
	found.rounds = append(found.rounds, got)
	found.result = medians(found.rounds)
}

func (r *report) find(way string, series, connections int) *row {
	for _, row := range r.Rows {
		if row.Way == way && row.Series == series && row.Connections == connections {
			return row
		}
	}
	return nil
}

// medians of each figure by itself.
func medians(of []result) result {
	median := func(figure func(result) float64) float64 {
		values := make([]float64, len(of))
		for i, r := range of {
			values[i] = figure(r)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return result{
		PerSecond: median(func(r result) float64 { return r.PerSecond }),
		P50:       median(func(r result) float64 { return r.P50 }), P99: median(func(r result) float64 { return r.P99 }),
		ServerCPU:   median(func(r result) float64 { return r.ServerCPU }),
		DatabaseCPU: median(func(r result) float64 { return r.DatabaseCPU }),
	}
}

// print prints a table, as Markdown.
func (r *report) print(w io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	p("%s, PostgreSQL %s; client, server and database on one machine; medians of %d × %.0f s\n\n", r.Machine, r.PostgreSQL, r.Repeats, r.Seconds)
	p("| series | connections | | numbers/s | p50 ms | p99 ms | CPU ms a number: server | database | × textbook | × single statement |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		p("| %d | %d | %s | %.0f | %.2f | %.2f | %.3f | %.3f | %s | %s |\n", row.Series, row.Connections, row.Way, row.PerSecond, row.P50, row.P99,
			row.ServerCPU, row.DatabaseCPU, r.ratio(row, textbookWay), r.ratio(row, singleWay))
	}
	for _, connections := range r.Connections {
		on, off := r.find(onWay, 1, connections), r.find(offWay, 1, connections)
		p("\nHot series, %d connections: joining on is %.2f × joining off.\n", connections, on.PerSecond/off.PerSecond)
	}
	if alone := r.find(onWay, 1, 1); alone != nil {
		text, naive := r.find(textbookWay, 1, 1), r.find(naiveWay, 1, 1)
		p("\nAlone: p50 %.2f ms: %.2f × the textbook transaction over the same HTTP path (%.2f ms). An HTTP request that does nothing takes %.2f ms, the textbook transaction by pgbench %.2f ms.\n",
			alone.P50, alone.P50/naive.P50, naive.P50, r.Floor.P50, text.P50)
	}
	for _, connections := range r.Connections {
		p("Hot series, %d connections: the textbook transaction's p99 is %.1f × the server's.\n", connections,
			r.find(textbookWay, 1, connections).P99/r.find(onWay, 1, connections).P99)
	}
	if r.Large.Large.PerSecond > 0 {
		p("\nHot series with %d invoices: p99 %.2f ms, against %.2f ms with %d: %.2f ×; %.0f and %.0f numbers/s.\n", r.Large.Many,
			r.Large.Large.P99, r.Large.Small.P99, r.Large.Few, r.Large.Large.P99/r.Large.Small.P99, r.Large.Large.PerSecond, r.Large.Small.PerSecond)
	}
	if r.Revocations.PerSecond > 0 {
		p("\nOrders, each charged at once by the simulated provider: %.0f/s, p50 %.1f ms, p99 %.1f ms.\n", r.Orders.PerSecond, r.Orders.P50, r.Orders.P99)
		p("16 keys of one customer revoked at once, 20 times: %.0f/s; attempts to place each: %.1f on average, %d at worst.\n",
			r.Revocations.PerSecond, r.Revocations.Mean, r.Revocations.Worst)
	}
	p("Peak memory of the server: %.0f MiB.\n", r.PeakMemoryMiB)
}

func (r *report) ratio(of *row, way string) string {
	if base := r.find(way, of.Series, of.Connections); base != nil {
		return fmt.Sprintf("%.2f", of.PerSecond/base.PerSecond)
	}
	return ""
}

// write writes the figures and the plot.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "figures.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "throughput.svg"), []byte(r.plot()), 0o644)
}
