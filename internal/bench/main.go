// Command bench measures the real server over HTTP and GraphQL. Allocation is measured against the
// textbook transaction, run by pgbench on the same PostgreSQL in the same run: machines are noisy,
// so the ratio of the two is the figure to look at. Orders, each with its payment, follow.
//
//	go run ./internal/bench [-seconds 10] [-connections 64] [-series 1000]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"countersign/internal/localpg"
)

func main() {
	seconds := flag.Int("seconds", 10, "how long each measurement takes")
	connections := flag.Int("connections", 64, "clients at once")
	series := flag.Int("series", 1000, "how many series the second measurement spreads over")
	binary := flag.String("binary", "bin/countersign", "the server")
	flag.Parse()
	if err := bench(context.Background(), *binary, time.Duration(*seconds)*time.Second, *connections, *series); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench runs everything on a database of its own, which it removes.
func bench(ctx context.Context, binary string, length time.Duration, connections, series int) error {
	dir, err := os.MkdirTemp("", "countersign-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	data := filepath.Join(dir, "data")
	s, err := startServer(binary, data)
	if err != nil {
		return err
	}
	defer s.stop()
	pg, err := localpg.Start(ctx, localpg.Config{DataDir: data})
	if err != nil {
		return err
	}
	defer func() { _ = pg.Close() }()

	many, err := s.createSeries(ctx, series)
	if err != nil {
		return err
	}
	baseline, err := newBaseline(ctx, pg.URL(), series)
	if err != nil {
		return err
	}
	fmt.Printf("%d connections, %v each, Go client and server and PostgreSQL on one machine\n\n", connections, length)
	fmt.Printf("| | per second | p50 ms | p99 ms | against pgbench |\n|---|---|---|---|---|\n")
	for _, c := range []struct {
		name  string
		over  []string
		texts int
	}{{"one hot series", many[:1], 1}, {fmt.Sprintf("%d series", series), many, series}} {
		textbook, err := baseline.run(ctx, connections, length, c.texts)
		if err != nil {
			return err
		}
		fmt.Printf("| %s, pgbench's textbook transaction | %.0f | %.1f | | 1 |\n", c.name, textbook.perSecond, textbook.p50)
		got, err := s.load(ctx, connections, length, s.allocation(c.over))
		if err != nil {
			return err
		}
		fmt.Printf("| %s, the server | %.0f | %.1f | %.1f | %.2f |\n", c.name, got.perSecond, got.p50, got.p99, got.perSecond/textbook.perSecond)
	}
	orders, err := s.load(ctx, connections, length, s.order())
	if err != nil {
		return err
	}
	fmt.Printf("| orders, charged at once by the simulated provider | %.0f | %.1f | %.1f | |\n", orders.perSecond, orders.p50, orders.p99)
	revoked, err := s.revoke(ctx, 20, 16)
	if err != nil {
		return err
	}
	fmt.Printf("\n16 keys of one customer revoked at once, 20 times: %.0f revocations/s; attempts to place each: %.1f on average, %d at worst\n",
		revoked.perSecond, revoked.mean, revoked.worst)
	fmt.Printf("\npeak memory of the server: %s\n", s.peakMemory())
	return nil
}
