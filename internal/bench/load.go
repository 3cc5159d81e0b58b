package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// allocate is the mutation that is measured.
const allocate = `mutation ($input: AllocateInvoiceInput!) { allocateInvoice(input: $input) { invoice { id number } userErrors { code } } }`

// allocation is the input of an allocation from the nth series.
func (s *server) allocation(n int) map[string]any {
	return map[string]any{
		"seriesId": seriesID(n).String(), "customerId": s.customer, "currency": "EUR",
		"lines": []any{map[string]any{"description": "Pawn", "quantity": 1, "unitAmountMinor": "100"}},
	}
}

// allocating measures a server's allocations, over the series in turn.
func (b *stand) allocating(s *server) func(ctx context.Context, connections, series int) (result, error) {
	return func(ctx context.Context, connections, series int) (result, error) {
		requests := make([][]byte, series)
		for n := range requests {
			requests[n] = s.request(allocate, map[string]any{"input": s.allocation(n)})
		}
		return b.measured(ctx, s, connections, requests, `"number":"`)
	}
}

// measured loads a server twice: to warm it up, and to measure it.
func (b *stand) measured(ctx context.Context, s *server, connections int, requests [][]byte, want string) (result, error) {
	if _, err := b.load(ctx, s, connections, b.warmUp, requests, want); err != nil {
		return result{}, err
	}
	return b.load(ctx, s, connections, b.length, requests, want)
}

// request is a GraphQL request as it goes over the wire.
func (s *server) request(query string, variables map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		panic(err)
	}
	target, err := url.Parse(s.url)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		target.Path, target.Host, s.token, len(body), body)
}

// load sends requests in turn from so many connections at once, each the next as soon as it has its
// answer, which must hold want. Client and server share the machine, so the client does as little
// as it can.
func (b *stand) load(ctx context.Context, s *server, connections int, length time.Duration, requests [][]byte, want string) (result, error) {
	var (
		mu    sync.Mutex
		times []float64
		fault error
		group sync.WaitGroup
	)
	before := b.cpu()
	begin := time.Now()
	for c := range connections {
		group.Go(func() {
			mine, err := s.drive(ctx, begin.Add(length), want, func(i int) []byte { return requests[(c+i*connections)%len(requests)] })
			mu.Lock()
			defer mu.Unlock()
			times, fault = append(times, mine...), errors.Join(fault, err)
		})
	}
	group.Wait()
	took := time.Since(begin)
	if fault != nil {
		return result{}, fault
	}
	slices.Sort(times)
	r := summarise(times, b.cpu().since(before))
	r.PerSecond = float64(len(times)) / took.Seconds()
	return r, nil
}

// drive sends requests over one connection until the end, and returns how long each took.
func (s *server) drive(ctx context.Context, end time.Time, want string, request func(i int) []byte) (times []float64, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/graphql"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReaderSize(conn, 16<<10)
	var body []byte
	for i := 0; time.Now().Before(end); i++ {
		start := time.Now()
		if _, err := conn.Write(request(i)); err != nil {
			return times, err
		}
		if body, err = readAnswer(answers, body); err != nil {
			return times, err
		}
		if !bytes.Contains(body, []byte(want)) {
			return times, fmt.Errorf("the server answers %s", body)
		}
		times = append(times, float64(time.Since(start))/float64(time.Millisecond))
	}
	return times, nil
}

// readAnswer reads an HTTP answer of a known length, into a buffer that it may replace.
func readAnswer(from *bufio.Reader, into []byte) ([]byte, error) {
	length := -1
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, errors.New("the answer has no Content-Length")
	}
	into = slices.Grow(into[:0], length)[:length]
	_, err := io.ReadFull(from, into)
	return into, err
}

// result is what a measurement came to: times in milliseconds, CPU in seconds per thousand
// numbers.
type result struct {
	PerSecond   float64 `json:"perSecond"`
	P50         float64 `json:"p50Ms"`
	P99         float64 `json:"p99Ms"`
	ServerCPU   float64 `json:"serverCpuSecondsPerThousand"`
	DatabaseCPU float64 `json:"databaseCpuSecondsPerThousand"`
}

// summarise tells of sorted times, and of the CPU used meanwhile.
func summarise(times []float64, used cpu) (r result) {
	if len(times) == 0 {
		return r
	}
	at := func(share float64) float64 { return times[int(share*float64(len(times)-1))] }
	thousands := float64(len(times)) / 1000
	return result{P50: at(0.5), P99: at(0.99), ServerCPU: used.server / thousands, DatabaseCPU: used.database / thousands}
}
