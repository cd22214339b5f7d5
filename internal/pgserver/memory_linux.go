package pgserver

import "syscall"

const (
	tmpfs = 0x01021994 // what statfs says of a file system in memory
	// roomy is how much must be free there. A server takes less: its files are some 40 MB at first, and the write-ahead log ends
	// at mostLog.
	roomy = 2 << 30
)

// inMemory tells whether a folder is in memory, with room for several servers.
func inMemory(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Type == tmpfs && fs.Bavail*uint64(fs.Bsize) >= roomy
}
