package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity is whom the server runs as. PostgreSQL refuses to run as root, so a
// process of root hands the server to somebody else; an ordinary user's server
// runs as that user, which is the zero identity.
type identity struct {
	name      string
	switched  bool // becomes uid and gid, which own the files
	uid, gid  int
	namespace bool // is root outside, an ordinary user inside a user namespace
}

// attr is how to start a process as this identity. It gets a process group of
// its own: Ctrl-C in the terminal must reach the user of the server first.
// There is no Pdeathsig, which would take the server from under other users.
func (id identity) attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if id.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
	}
	if id.namespace {
		inNamespace(attr)
	}
	return attr
}

// own gives an open file to the identity.
func (id identity) own(f *os.File) error {
	if !id.switched {
		return nil
	}
	return f.Chown(id.uid, id.gid)
}

// identities are those to try, best first. For root: whoever has the folder
// already, an ordinary account, and the user namespace, whose price is that the
// server can read what only root should.
func (in *install) identities() []identity {
	if os.Geteuid() != 0 {
		return []identity{{}}
	}
	var ids []identity
	if uid, gid, err := owner(in.dir); err == nil && uid != 0 {
		ids = append(ids, identity{name: "user " + strconv.Itoa(uid), switched: true, uid: uid, gid: gid})
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(account.Uid)
		gid, gidErr := strconv.Atoi(account.Gid)
		if errors.Join(uidErr, gidErr) == nil && uid > 0 {
			ids = append(ids, identity{name: "user " + name, switched: true, uid: uid, gid: gid})
		}
	}
	if canNamespace {
		ids = append(ids, identity{name: "a user namespace", switched: true, namespace: true})
	}
	return ids
}

// settle decides whom the server runs as and gives them the files. The test is
// to run a program of binDir as them inside the folder: permissions, access
// lists and the container's rules have all had their say then. It tells the
// program's major version too.
func (in *install) settle(ctx context.Context, binDir string) (id identity, major int, err error) {
	var tried error
	for _, id := range in.identities() {
		if err := in.give(id); err != nil {
			return id, 0, err
		}
		if major, err = programVersion(ctx, binDir, in.dir, id); err == nil {
			return id, major, nil
		}
		// Only who cannot get there is passed over: giving the files away for
		// a passing failure would lock their owner out.
		var exit *exec.ExitError
		if ctx.Err() != nil || !id.namespace && !errors.Is(err, fs.ErrPermission) && !errors.As(err, &exit) {
			return id, 0, err
		}
		if id.name != "" {
			err = fmt.Errorf("as %s: %w", id.name, err)
		}
		tried = errors.Join(tried, err)
	}
	if os.Geteuid() != 0 {
		return id, 0, tried
	}
	return id, 0, fmt.Errorf("PostgreSQL refuses to run as root and no other user can reach both %s and %s: "+
		"choose folders that user postgres may enter (%s)", in.dir, binDir, oneLine(tried))
}

// give makes the identity the owner of the folder and all that is ours in it.
func (in *install) give(id identity) error {
	if !id.switched {
		return nil
	}
	if err := os.Lchown(in.dir, id.uid, id.gid); err != nil {
		return err
	}
	for _, name := range []string{startLockName, useLockName, logName, clusterName, socketDirName} {
		if err := giveTree(filepath.Join(in.dir, name), id); err != nil {
			return err
		}
	}
	return nil
}

// giveTree hands over top and everything below. top itself comes last: if it
// has the right owner already, all the rest has too.
func giveTree(top string, id identity) error {
	if !id.switched {
		return nil
	}
	uid, gid, err := owner(top)
	if errors.Is(err, fs.ErrNotExist) || err == nil && uid == id.uid && gid == id.gid {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(top)
	if err != nil {
		return err
	}
	if info.IsDir() {
		// Through a Root: whoever owns the tree cannot lead us out of it.
		root, err := os.OpenRoot(top)
		if err != nil {
			return err
		}
		defer root.Close()
		err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || path == "." {
				return err
			}
			return root.Lchown(path, id.uid, id.gid)
		})
		if err != nil {
			return err
		}
	}
	return os.Lchown(top, id.uid, id.gid)
}

func owner(path string) (uid, gid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), int(stat.Gid), nil
}
