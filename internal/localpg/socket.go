package localpg

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxSocketPath is what the address of a unix socket holds: 107 bytes on
// Linux, 103 on macOS.
const maxSocketPath = 103

// makeSocketDir makes the folder of the socket, open to the server's user
// only: whoever can enter it is the database's superuser. It lies in the data
// folder, or below the temporary folder where that path cannot be a socket's.
func (in *install) makeSocketDir(ctx context.Context, binDir string, as identity) (string, error) {
	dir := filepath.Join(in.dir, socketDirName)
	if fitsSocket(dir) {
		return dir, privateFolder(dir, as)
	}
	name := fmt.Sprintf("countersign-%x", sha256.Sum256([]byte(in.dir)))[:28]
	var tried error
	for _, parent := range slices.Compact([]string{filepath.Clean(os.TempDir()), "/tmp"}) {
		dir := filepath.Join(parent, name)
		if !fitsSocket(dir) {
			tried = errors.Join(tried, fmt.Errorf("%s is too long for a socket", dir))
			continue
		}
		err := privateFolder(dir, as)
		if err == nil {
			_, err = programVersion(ctx, binDir, dir, as)
		}
		if err == nil {
			return dir, nil
		}
		tried = errors.Join(tried, err)
	}
	return "", fmt.Errorf("the path of %s is no place for a socket, nor is another: %s", in.dir, oneLine(tried))
}

func fitsSocket(dir string) bool {
	// The server reads a list of folders, clients a list of hosts.
	return len(dir)+len("/.s.PGSQL."+port) <= maxSocketPath && !strings.ContainsAny(dir, `,"'`)
}

// privateFolder makes the folder, or checks that the one that is there was not
// put there by another user.
func privateFolder(dir string, as identity) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil && as.switched {
		return os.Lchown(dir, as.uid, as.gid)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	uid, _, err := owner(dir)
	if err != nil {
		return err
	}
	mine := uid == os.Geteuid() || as.switched && uid == as.uid
	if !info.IsDir() || !mine || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s is not a private folder of ours (%v of uid %d): remove it", dir, info.Mode(), uid)
	}
	if as.switched && uid != as.uid {
		return os.Lchown(dir, as.uid, as.gid)
	}
	return nil
}

// removeSocketDir tidies up after a stop. Only an empty folder goes, and
// never one in the data folder.
func (in *install) removeSocketDir(dir string) {
	if dir != filepath.Join(in.dir, socketDirName) && strings.HasPrefix(filepath.Base(dir), "countersign-") {
		os.Remove(dir)
	}
}
