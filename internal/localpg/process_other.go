//go:build !linux

package localpg

import (
	"os/exec"
	"strconv"
	"strings"
)

// isPostmaster tells whether the process is a living postmaster that was
// started on this data directory. A zombie's command line is gone.
func isPostmaster(pid int, cluster string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false
	}
	command := strings.TrimSpace(string(out)) + " "
	// Children show "postgres: what they do".
	return strings.Contains(command, "/postgres -D "+cluster+" ")
}
