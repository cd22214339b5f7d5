package childproc

import (
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
)

// User is an account that a child runs as. A nil *User means our own, for which every method does nothing.
type User struct {
	Name     string
	uid, gid uint32
}

// Unprivileged returns an ordinary account when we are root, since PostgreSQL refuses to run as root, and nil when we are
// an ordinary user ourselves. It takes the first of names that exists.
func Unprivileged(names ...string) (*User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		account, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return &User{Name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("no ordinary account to run a server as: none of %q exists", names)
}

// Own makes the account the owner of path.
func (u *User) Own(path string) error {
	if u == nil {
		return nil
	}
	if err := os.Chown(path, int(u.uid), int(u.gid)); err != nil {
		return fmt.Errorf("give folder to user %s: %w", u.Name, err)
	}
	return nil
}

// CanEnter returns an error that names the first folder at or above path which not everybody may search.
func (u *User) CanEnter(path string) error {
	if u == nil {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("user %s can't enter %s: choose another folder, or allow it with chmod a+x", u.Name, path)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return nil
		}
		path = parent
	}
}
