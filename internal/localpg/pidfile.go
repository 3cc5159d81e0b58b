package localpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFile is what postmaster.pid tells. The file names the server of a data
// directory while it runs; after a crash it is stale, and the process id may
// belong to anybody.
type pidFile struct {
	pid       int
	socketDir string
	status    string // starting, stopping, ready, standby; empty while the file is being written
}

const pidFileName = "postmaster.pid"

// readPidFile returns ok == false if there is no complete first line.
func readPidFile(cluster string) (p pidFile, ok bool) {
	data, err := os.ReadFile(filepath.Join(cluster, pidFileName))
	if err != nil {
		return p, false
	}
	// Lines, from 1: pid, data directory, start time, port, socket directory,
	// TCP address, shared memory key, status.
	lines := strings.Split(string(data), "\n")
	line := func(n int) string {
		if n > len(lines) {
			return ""
		}
		return strings.TrimSpace(lines[n-1])
	}
	pid, err := strconv.Atoi(line(1))
	if err != nil || pid <= 1 {
		return p, false
	}
	return pidFile{pid: pid, socketDir: line(5), status: line(8)}, true
}
