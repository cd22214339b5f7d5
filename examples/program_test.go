package examples

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/javalibs"
	"outboxrelay/internal/relayproc"
)

// program is an example consumer.
type program struct {
	name     string
	path     string
	args     []string                // of the command in README.md, but for where things are on this machine
	database func(url string) string // the form of the URL that it wants
}

// programs makes all examples ready to run. The one in Go gets the race detector.
func programs(t *testing.T) []program {
	t.Helper()
	same := func(url string) string { return url }
	goProgram := filepath.Join(t.TempDir(), "consumer-go")
	if out, err := exec.Command("go", "build", "-race", "-o", goProgram, "./consumer-go").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	java, err := javalibs.Java()
	if err != nil {
		t.Fatal(err)
	}
	project, err := os.ReadFile("consumer-java/pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	// The folder's name changes with what is in it.
	libs, err := javalibs.Folder(t.Context(), fmt.Sprintf("consumer-java-%.8x", sha256.Sum256(project)), string(project))
	if err != nil {
		t.Fatal(err)
	}
	return []program{
		{"go", goProgram, nil, same},
		{"python", aksaratest.Install(t), []string{"consumer-python/consumer.py"}, same},
		{"java", java, []string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", javalibs.ClassPath(libs), "consumer-java/Consumer.java"}, jdbc},
	}
}

// jdbc writes a URL of libpq's as Java's driver wants it.
func jdbc(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	query := parsed.Query()
	query.Set("user", parsed.User.Username())
	if password, ok := parsed.User.Password(); ok {
		query.Set("password", password)
	}
	return fmt.Sprintf("jdbc:postgresql://%s%s?%s", parsed.Host, parsed.Path, query.Encode())
}

// consumer is a program that runs.
type consumer struct {
	cmd *exec.Cmd
	log *relayproc.Log
}

// start runs the program with the variables that README.md names.
func (p program) start(t *testing.T, brokers []string, topic, group, database string) *consumer {
	t.Helper()
	c := &consumer{cmd: exec.Command(p.path, p.args...), log: &relayproc.Log{}}
	c.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"KAFKA_BROKERS=" + strings.Join(brokers, ","), "KAFKA_TOPIC=" + topic, "KAFKA_GROUP=" + group,
		"DATABASE_URL=" + p.database(database),
	}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("%s consumer's output:\n%s", p.name, c.log)
		}
		if strings.Contains(c.log.String(), "DATA RACE") {
			t.Error("the race detector found a race in the consumer")
		}
	})
	return c
}

// kill ends the program as a crash does.
func (c *consumer) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill() // an error says that it has ended
		_ = c.cmd.Wait()
	}
}

// ended waits for the program to end by itself with an error, and gives its output.
func (c *consumer) ended(t *testing.T) string {
	t.Helper()
	exited := make(chan struct{})
	go func() {
		_ = c.cmd.Wait() // the status is looked at below
		close(exited)
	}()
	select {
	case <-exited:
	case <-time.After(relayproc.Patience):
		_ = c.cmd.Process.Kill()
		<-exited
		t.Errorf("the consumer has not ended in %s", relayproc.Patience)
	}
	if c.cmd.ProcessState.ExitCode() == 0 {
		t.Error("the consumer ended with status 0")
	}
	return c.log.String()
}
