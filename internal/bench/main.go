// Command bench measures the real server over HTTP and GraphQL, and beside it, in the same run on the
// same PostgreSQL and the same tables, what pgbench reaches there: machines are noisy, so the
// ratios are the figures to look at.
//
//	go run ./internal/bench [-seconds 6] [-repeats 3] [-connections 1,16,64] [-series 1000] [-out build/bench]
//
// Five ways to number invoices take turns: the textbook transaction and the product's single
// statement, both by pgbench; the textbook transaction over the product's HTTP and GraphQL; and the
// server with joining off and on; on one hot series, and spread over many. Each is warmed up, measured, and measured again in later rounds; medians are told. With
// -invoices the hot series is measured again when the table holds so many.
//
// It writes figures.json and throughput.svg beside the table that it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// plan is what to measure.
type plan struct {
	binary      string
	length      time.Duration
	warmUp      time.Duration
	repeats     int
	connections []int
	series      int
	invoices    int
	out         string
}

func main() {
	var p plan
	seconds := flag.Float64("seconds", 6, "how long each measurement takes")
	connections := flag.String("connections", "1,16,64", "clients at once")
	flag.IntVar(&p.repeats, "repeats", 3, "how often each measurement is made")
	flag.IntVar(&p.series, "series", 1000, "how many series the second part spreads over")
	flag.IntVar(&p.invoices, "invoices", 0, "measure the hot series again with so many invoices in the table")
	flag.StringVar(&p.binary, "binary", "bin/countersign", "the server")
	flag.StringVar(&p.out, "out", "build/bench", "where to write figures.json and throughput.svg")
	serve := flag.Bool("textbook-server", false, "be the server that numbers by the textbook transaction")
	flag.Parse()
	if *serve {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := textbookServer(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		return
	}
	p.length = time.Duration(*seconds * float64(time.Second))
	p.warmUp = max(p.length/4, 500*time.Millisecond)
	err := p.parseConnections(*connections)
	if err == nil {
		err = p.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (p *plan) parseConnections(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-connections is a list such as 1,16,64")
		}
		p.connections = append(p.connections, n)
	}
	return nil
}

// run measures everything on a database of its own, which it removes.
func (p *plan) run(ctx context.Context) error {
	b, err := newStand(ctx, p)
	if err != nil {
		return err
	}
	defer b.close()
	r := &report{Connections: p.connections, Repeats: p.repeats, Seconds: p.length.Seconds(), Machine: machine(), PostgreSQL: b.version}
	for round := range p.repeats {
		for _, series := range []int{1, p.series} {
			for _, connections := range p.connections {
				for _, w := range b.ways {
					got, err := w.measure(ctx, connections, series)
					if err != nil {
						return fmt.Errorf("%s, %d series, %d connections: %w", w.name, series, connections, err)
					}
					r.add(w.name, series, connections, got)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d is done\n", round+1, p.repeats)
	}
	err = b.beside(ctx, r)
	r.PeakMemoryMiB = b.on.peakMemory()
	r.print(os.Stdout)
	return errors.Join(err, r.write(p.out))
}

// beside measures what belongs to no way of numbering. What fails there costs nothing of what was
// measured before.
func (b *stand) beside(ctx context.Context, r *report) (err error) {
	if r.Floor, err = b.floor(ctx); err != nil {
		return err
	}
	if b.invoices > 0 {
		if r.Large, err = b.large(ctx, b.invoices); err != nil {
			return err
		}
	}
	return b.others(ctx, r)
}
