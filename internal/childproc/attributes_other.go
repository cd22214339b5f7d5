//go:build !linux

package childproc

import (
	"errors"
	"syscall"
)

// attributes leaves a child in our process group, so that a terminal's Ctrl-C ends it too: there is no death signal here.
func attributes(command Command) (*syscall.SysProcAttr, error) {
	if command.User != nil {
		return nil, errors.New("a server can be started as root on Linux only: run this as an ordinary user")
	}
	return nil, nil
}
