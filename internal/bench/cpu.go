package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// cpu is CPU time in seconds, as the kernel has counted it; zero where it tells nothing.
type cpu struct{ server, database float64 }

func (c cpu) since(before cpu) cpu {
	return cpu{c.server - before.server, c.database - before.database}
}

// ticks is how many of the kernel's clock ticks make a second, on every Linux that Go runs on.
const ticks = 100

// cpu is what the servers and PostgreSQL's processes, those that have ended too, have used.
func (b *stand) cpu() (c cpu) {
	for _, s := range b.servers() {
		own, _, _ := processCPU(strconv.Itoa(s.process.Process.Pid))
		c.server += own
	}
	postmaster := b.postmaster()
	own, ended, _ := processCPU(postmaster)
	c.database = own + ended
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		if own, _, parent := processCPU(filepath.Base(filepath.Dir(stat))); parent == postmaster {
			c.database += own
		}
	}
	return c
}

// postmaster is the process that all of PostgreSQL's are children of.
func (b *stand) postmaster() string {
	pids, _ := filepath.Glob(filepath.Join(b.dir, "data", "*", "postmaster.pid"))
	for _, file := range pids {
		text, _ := os.ReadFile(file)
		pid, _, _ := strings.Cut(string(text), "\n")
		return pid
	}
	return ""
}

// processCPU is the time of a process and of its children that have ended, and its parent.
func processCPU(pid string) (own, ended float64, parent string) {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, ""
	}
	number := func(i int) float64 {
		n, _ := strconv.ParseFloat(fields[i], 64)
		return n / ticks
	}
	return number(11) + number(12), number(13) + number(14), fields[1]
}

// machine says what the figures were measured on.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

// peakMemory is the most memory the server had resident, in MiB.
func (s *server) peakMemory() float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	for line := range strings.SplitSeq(string(status), "\n") {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 64)
			return kib / 1024
		}
	}
	return 0
}
