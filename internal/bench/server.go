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

var printed = regexp.MustCompile(`(http://\S+/graphql)|^token +(\S+)|^customer +(\S+)|^product +(\S+)|^(series|ready)\b`)

func startServer(data string, process *exec.Cmd, settings ...string) (*server, error) {
	s := &server{process: process}
	s.process.Env = append(append(os.Environ(), "LISTEN_ADDR=127.0.0.1:0", "COUNTERSIGN_ENV=development", "DATABASE_URL=",
		"COUNTERSIGN_DATA_DIR="+data, "COUNTERSIGN_LOG_LEVEL=ERROR"), settings...)
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
