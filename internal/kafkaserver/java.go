package kafkaserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"outboxrelay/internal/childproc"
)

// What a machine may lack.
var (
	// ErrNoJava means that Kafka cannot run here.
	ErrNoJava = errors.New("no Java is installed here, which Kafka needs (17 or newer): install one (Debian and Ubuntu: apt-get install default-jre-headless)")
	// ErrNoMaven means that Kafka's jars cannot be fetched, and have not been before.
	ErrNoMaven = errors.New("no Maven is installed here, which fetches Kafka's jars: install it (Debian and Ubuntu: apt-get install maven)")
)

// version is Kafka's, the same as in pom.xml.
const version = "4.4.0"

// project lists Kafka's jars for Maven.
//
//go:embed pom.xml
var project string

// machine is a JVM to run Kafka's classes with.
type machine struct {
	java       string // the program
	libs       string // folder of Kafka's jars
	throughput bool
}

// flags keep the JVM small and quick to start unless it is to be measured. The star is Java's own, not a shell's.
func (m machine) flags() []string {
	flags := []string{"-cp", filepath.Join(m.libs, "*"), "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError"}
	if m.throughput {
		return append(flags, "-Xms1g", "-Xmx1g")
	}
	return append(flags, "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
}

// findJava returns the java of JAVA_HOME, or the one on PATH.
func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if java, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return java, nil
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", ErrNoJava
	}
	return java, nil
}

// fetching has one fetch at a time in a process: a second one would find the first one's jars.
var fetching sync.Mutex

// jars returns the folder of Kafka's jars in the user's cache, which it fills at the first call.
func jars(ctx context.Context) (libs string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("keep Kafka's jars: %w", err)
	}
	libs = filepath.Join(cache, "outboxrelay", "kafka-"+version)
	fetching.Lock()
	defer fetching.Unlock()
	if _, err := os.Stat(libs); err == nil {
		return libs, nil
	}
	return libs, fill(ctx, libs)
}

// fill makes libs. Two processes may do so at once: each fetches into a folder of its own, and the first one's stays.
func fill(ctx context.Context, libs string) (err error) {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return ErrNoMaven
	}
	cache := filepath.Dir(libs)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	if err := fetch(ctx, maven, work); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(work, "libs"), libs); err != nil {
		if _, missing := os.Stat(libs); missing != nil {
			return fmt.Errorf("keep Kafka's jars: %w", err)
		}
	}
	return nil
}

// fetch fills work/libs. Maven gets a local repository in work, because two Mavens at once can damage one that they share.
func fetch(ctx context.Context, maven, work string) error {
	if err := write(work, "pom.xml", project); err != nil {
		return err
	}
	err := childproc.Run(ctx, childproc.Command{
		Path: maven,
		Args: []string{"-q", "-B", "-Dmaven.repo.local=" + filepath.Join(work, "repository"),
			"dependency:copy-dependencies", "-DoutputDirectory=" + filepath.Join(work, "libs")},
		Dir: work,
		Log: filepath.Join(work, "log"),
	})
	if err != nil {
		return fmt.Errorf("fetch Kafka %s with Maven: %w", version, err)
	}
	return nil
}
