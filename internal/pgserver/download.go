package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"outboxrelay/internal/childproc"
)

// downloadVersion is the PostgreSQL that downloaded fetches.
const downloadVersion = embeddedpostgres.V18

// downloaded returns the folder of server programs in the user's cache, which it fills at the first call. The download
// cannot be interrupted: when ctx ends first it goes on, and serves the next call.
func downloaded(ctx context.Context, user *childproc.User) (bin string, err error) {
	cache, err := cacheDir(user)
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "postgres-"+string(downloadVersion))
	if bin = filepath.Join(home, "bin"); complete(bin) {
		return bin, nil
	}
	fetched := make(chan error, 1)
	go func() { fetched <- fetch(cache, home) }()
	select {
	case err := <-fetched:
		return bin, errors.Join(err, user.CanEnter(bin))
	case <-ctx.Done():
		return "", fmt.Errorf("fetch PostgreSQL %s: %w", downloadVersion, context.Cause(ctx))
	}
}

// fetch makes home. Two processes may do so at once: each unpacks into a folder of its own, and the first one's stays.
func fetch(cache, home string) (err error) {
	work, err := os.MkdirTemp(cache, "unpack-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	programs := filepath.Join(work, "programs")
	if err := unpack(work, programs); err != nil {
		return fmt.Errorf("fetch PostgreSQL %s: %w", downloadVersion, err)
	}
	if err := os.Rename(programs, home); err != nil && !complete(filepath.Join(home, "bin")) {
		return fmt.Errorf("keep PostgreSQL %s: %w", downloadVersion, err)
	}
	return nil
}

// unpack downloads the programs. The library can do so only as the first step of its own Start, which refuses root and whose
// server would outlive us. So it is given a locale that does not exist: whoever calls, it stops right after unpacking, and
// what counts is whether the programs are there.
func unpack(work, programs string) error {
	ports, err := childproc.FreePorts(1)
	if err != nil {
		return err
	}
	err = embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		Port(uint32(ports[0])).
		Locale("none-so-that-no-server-starts").
		CachePath(filepath.Join(work, "archive")).
		BinariesPath(programs).
		RuntimePath(filepath.Join(work, "runtime")).
		Logger(io.Discard)).Start()
	if complete(filepath.Join(programs, "bin")) {
		return nil
	}
	return err
}

// cacheDir returns the project's folder in the user's cache. Root's own cache is closed to the account that will run the
// programs, so root's lies beside the system's.
func cacheDir(user *childproc.User) (string, error) {
	cache, err := os.UserCacheDir()
	if user != nil {
		cache, err = "/var/cache", nil
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "outboxrelay")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, user.CanEnter(dir)
}
