// Package javalibs finds this machine's Java and fetches jars for it with Maven, once for a version: those of Kafka's
// server, of what the benchmark compares the relay with, and of the example consumer.
package javalibs

import (
	"context"
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
	// ErrNoJava means that nothing on a JVM can run here.
	ErrNoJava = errors.New("no Java is installed here, which Kafka needs (17 or newer): install one (Debian and Ubuntu: apt-get install default-jre-headless)")
	// ErrNoMaven means that jars cannot be fetched, and have not been before.
	ErrNoMaven = errors.New("no Maven is installed here, which fetches jars: install it (Debian and Ubuntu: apt-get install maven)")
)

// Java returns the java of JAVA_HOME, or the one on PATH.
func Java() (string, error) {
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

// Folder returns the folder of a program's jars in the user's cache, which it fills at the first call. Name has the
// program's version in it, and project is the pom.xml that lists the jars.
func Folder(ctx context.Context, name, project string) (libs string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("keep the jars of %s: %w", name, err)
	}
	libs = filepath.Join(cache, "outboxrelay", name)
	fetching.Lock()
	defer fetching.Unlock()
	if _, err := os.Stat(libs); err == nil {
		return libs, nil
	}
	if err := fill(ctx, libs, project); err != nil {
		return "", fmt.Errorf("fetch %s with Maven: %w", name, err)
	}
	return libs, nil
}

// ClassPath is what java takes to find the jars of a folder. The star is Java's own, not a shell's.
func ClassPath(libs string) string { return filepath.Join(libs, "*") }

// fill makes libs. Two processes may do so at once: each fetches into a folder of its own, and the first one's stays.
func fill(ctx context.Context, libs, project string) (err error) {
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

	if err := fetch(ctx, maven, work, project); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(work, "libs"), libs); err != nil {
		if _, missing := os.Stat(libs); missing != nil {
			return fmt.Errorf("keep the jars: %w", err)
		}
	}
	return nil
}

// fetch fills work/libs. Maven gets a local repository in work, because two Mavens at once can damage one that they share.
func fetch(ctx context.Context, maven, work, project string) error {
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), []byte(project), 0o600); err != nil {
		return err
	}
	return childproc.Run(ctx, childproc.Command{
		Path: maven,
		Args: []string{"-q", "-B", "-Dmaven.repo.local=" + filepath.Join(work, "repository"),
			"dependency:copy-dependencies", "-DoutputDirectory=" + filepath.Join(work, "libs")},
		Dir: work,
		Log: filepath.Join(work, "log"),
	})
}
