package localpg

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// isPostmaster tells whether the process is a living postmaster of this data
// directory: it works in that directory, or was started on it. A zombie is
// neither: it has no command line and no working directory any more.
func isPostmaster(pid int, cluster string) bool {
	proc := fmt.Sprintf("/proc/%d", pid)
	cmdline, err := os.ReadFile(proc + "/cmdline")
	if err != nil {
		return false
	}
	args := strings.Split(string(cmdline), "\x00")
	if !isPostgresProgram(args[0]) {
		return false
	}
	// A container may forbid even root to look at another user's working
	// directory; anybody may read the command line.
	if cwd, err := os.Stat(proc + "/cwd"); err == nil {
		if dir, err := os.Stat(cluster); err == nil {
			return os.SameFile(cwd, dir)
		}
	}
	for i, arg := range args[:len(args)-1] {
		if arg == "-D" && samePath(args[i+1], cluster) {
			return true
		}
	}
	return false
}

func isPostgresProgram(path string) bool {
	// Children rewrite their command line to "postgres: what they do".
	base := filepath.Base(path)
	return base == "postgres" || base == "postmaster"
}
