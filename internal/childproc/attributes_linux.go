package childproc

import (
	"cmp"
	"syscall"
)

// attributes puts a child in a process group of its own, so that a terminal's Ctrl-C reaches only us, and has the kernel
// end it with us.
func attributes(command Command) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{
		Setpgid:   true,
		Pdeathsig: cmp.Or(command.DeathSignal, syscall.SIGKILL),
	}
	if user := command.User; user != nil {
		attributes.Credential = &syscall.Credential{Uid: user.uid, Gid: user.gid}
	}
	return attributes, nil
}
