package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is the real binary at work.
type server struct {
	process  *exec.Cmd
	url      string
	token    string
	customer string
	product  string
	client   *http.Client
}

var printed = regexp.MustCompile(`(http://\S+/graphql)|^token +(\S+)|^customer +(\S+)|^product +(\S+)|^(series) `)

func startServer(binary, data string) (*server, error) {
	s := &server{process: exec.Command(binary, "serve")}
	s.process.Env = append(os.Environ(), "LISTEN_ADDR=127.0.0.1:0", "COUNTERSIGN_ENV=development", "DATABASE_URL=",
		"COUNTERSIGN_DATA_DIR="+data, "COUNTERSIGN_LOG_LEVEL=ERROR")
	s.process.Stderr = os.Stderr
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		m := printed.FindStringSubmatch(lines.Text())
		switch {
		case m == nil:
		case m[1] != "":
			s.url = m[1]
		case m[2] != "":
			s.token = m[2]
		case m[3] != "":
			s.customer = m[3]
		case m[4] != "":
			s.product = m[4]
		}
		if m != nil && m[5] != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			s.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}
			return s, nil
		}
	}
	return nil, errors.New("the server did not start")
}

func (s *server) stop() {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
}

// peakMemory is the most memory the server had resident.
func (s *server) peakMemory() string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	for line := range strings.SplitSeq(string(status), "\n") {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown on this system"
}

// ask sends one GraphQL request; its answer must hold want.
func (s *server) ask(ctx context.Context, query string, input map[string]any, want string) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"input": input}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(answer, []byte(want)) {
		err = fmt.Errorf("the server answers %s", answer)
	}
	return answer, err
}

var seriesID = regexp.MustCompile(`ser_\w+`)

func (s *server) createSeries(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		answer, err := s.ask(ctx, `mutation ($input: CreateInvoiceSeriesInput!) { createInvoiceSeries(input: $input) { series { id } userErrors { message } } }`,
			map[string]any{"code": fmt.Sprintf("B%d", i)}, "ser_")
		if err != nil {
			return nil, err
		}
		ids[i] = seriesID.FindString(string(answer))
	}
	return ids, nil
}

// result is what a measurement came to; times in milliseconds.
type result struct{ perSecond, p50, p99 float64 }

// request is the nth request of a measurement, and what its answer must hold.
type request struct {
	query string
	input func(n int) map[string]any
	want  string
}

// allocation allocates over the series in turn.
func (s *server) allocation(series []string) request {
	return request{`mutation ($input: AllocateInvoiceInput!) { allocateInvoice(input: $input) { invoice { id number } userErrors { code } } }`,
		func(n int) map[string]any {
			return map[string]any{
				"seriesId": series[n%len(series)], "customerId": s.customer, "currency": "EUR",
				"lines": []any{map[string]any{"description": "Pawn", "quantity": 1, "unitAmountMinor": "100"}},
			}
		}, `"number":"`}
}

// order places an order that the simulated provider charges at once.
func (s *server) order() request {
	return request{`mutation ($input: PlaceOrderInput!) { placeOrder(input: $input) { order { id status } userErrors { code } } }`,
		func(n int) map[string]any {
			return map[string]any{
				"idempotencyKey": fmt.Sprintf("bench %d", n), "customerId": s.customer, "paymentMethod": "sim_ok",
				"items": []any{map[string]any{"productId": s.product, "quantity": 1}},
			}
		}, `"PAID"`}
}

// load sends requests from so many connections at once.
func (s *server) load(ctx context.Context, connections int, length time.Duration, r request) (result, error) {
	var (
		mu    sync.Mutex
		times []time.Duration
		fault error
		group sync.WaitGroup
	)
	begin := time.Now()
	for c := range connections {
		group.Go(func() {
			var mine []time.Duration
			for i := c; time.Since(begin) < length; i += connections {
				start := time.Now()
				_, err := s.ask(ctx, r.query, r.input(i), r.want)
				if err != nil {
					mu.Lock()
					fault = err
					mu.Unlock()
					return
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			times = append(times, mine...)
			mu.Unlock()
		})
	}
	group.Wait()
	took := time.Since(begin)
	if fault != nil {
		return result{}, fault
	}
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[int(share*float64(len(times)-1))]) / float64(time.Millisecond)
	}
	return result{perSecond: float64(len(times)) / took.Seconds(), p50: at(0.5), p99: at(0.99)}, nil
}
