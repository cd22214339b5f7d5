package kafkaserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"outboxrelay/internal/childproc"
)

const (
	loggingFile    = "log4j2.xml"
	propertiesFile = "server.properties"

	// startedLine is what a node prints when it serves. Its port takes connections long before.
	startedLine = "Kafka Server started"

	// stopGrace is how long an orderly stop may take: it lasts until another broker leads what this one did.
	stopGrace = time.Minute
)

// node is one process of a cluster, a broker or a controller or both, with a folder of its own.
type node struct {
	id         int
	ports      ports
	properties []string // without the data's place
	dir        string
	temp       *childproc.TempDir // the cluster's, above dir
	vm         machine
	secrets    *secrets // nil if nothing is secured

	mu      sync.Mutex
	process *childproc.Process // nil while it does not run
}

// format makes the node's empty data folder. No node starts without.
func (n *node) format(ctx context.Context, cluster string) error {
	arguments := []string{"format", "-t", cluster, "-c", propertiesFile}
	if n.secrets != nil {
		arguments = append(arguments, "--add-scram", n.secrets.scram())
	}
	if err := childproc.Run(ctx, n.command("kafka.tools.StorageTool", arguments...)); err != nil {
		return fmt.Errorf("format node %d: %w", n.id, err)
	}
	return nil
}

func (n *node) start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return fmt.Errorf("node %d runs already", n.id)
	}
	command := n.command("kafka.Kafka", propertiesFile)
	before, err := os.Stat(command.Log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var earlier int64
	if before != nil {
		earlier = before.Size()
	}
	process, err := childproc.Start(command)
	if err != nil {
		return err
	}
	started := func(context.Context) error { return findLine(command.Log, earlier) }
	if err := process.AwaitReady(ctx, started); err != nil {
		process.Kill()
		return fmt.Errorf("node %d: %w", n.id, err)
	}
	n.process = process
	return nil
}

// findLine looks for startedLine in the log, from a position on.
func findLine(log string, from int64) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, from, 1<<30))
	if err == nil && !bytes.Contains(content, []byte(startedLine)) {
		err = fmt.Errorf("has not printed %q", startedLine)
	}
	return err
}

func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.Kill()
		n.process = nil
	}
	return nil
}

func (n *node) stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	err := n.process.Stop(syscall.SIGTERM, stopGrace)
	n.process = nil
	return err
}

// command runs one of Kafka's classes in the node's folder.
func (n *node) command(class string, arguments ...string) childproc.Command {
	flags := append(n.vm.flags(), "-Dlog4j2.configurationFile="+loggingFile, "-Djava.io.tmpdir="+n.dir, class)
	return childproc.Command{
		Path: n.vm.java,
		Args: append(flags, arguments...),
		Dir:  n.dir,
		Env:  childproc.Environment("KAFKA_", "CLASSPATH"),
		Log:  filepath.Join(n.dir, "log"),
		Temp: n.temp,
	}
}

// newClusterID returns 16 random bytes the way Kafka writes them. The first bit is 0, since an argument must not begin with a
// hyphen.
func newClusterID() string {
	id := make([]byte, 16)
	// It never fails.
	_, _ = rand.Read(id)
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id)
}
