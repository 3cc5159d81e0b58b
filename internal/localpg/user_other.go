//go:build !linux

package localpg

import "syscall"

const canNamespace = false

func inNamespace(*syscall.SysProcAttr) {}
