package localpg

import "syscall"

const canNamespace = true

// inNamespace starts the process as an ordinary user of a new user namespace
// that is root outside. It needs no path that another account can enter, and
// the process holds no capability outside its namespace.
func inNamespace(attr *syscall.SysProcAttr) {
	const inside = 1000
	attr.Cloneflags = syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: 0, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: 0, Size: 1}}
	attr.Credential = &syscall.Credential{Uid: inside, Gid: inside, NoSetGroups: true}
}
