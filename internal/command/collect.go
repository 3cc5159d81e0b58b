package command

import (
	"os"
	"runtime/debug"
	"sync/atomic"
)

// ballast counts as living and is never touched, so it takes no memory: it spaces the runs of the garbage
// collector, which would else come after every few MiB, since what lives in a server is 2 or 3.
var ballast atomic.Pointer[[]byte]

// CollectSeldom makes a server collect its garbage after some 30 MiB of it, or after twice what lives where
// that is more, as while a long import is read. GOGC, where it is set, says otherwise.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		ballast.Store(new(make([]byte, 12<<20)))
		debug.SetGCPercent(200)
	}
}
