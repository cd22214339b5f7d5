package imagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/javalibs"
	"outboxrelay/internal/kafkaserver"
)

const (
	root    = "../.."
	compose = "docker-compose"
	// insideVariable marks the process that runs in namespaces of its own.
	insideVariable = "IMAGETEST_INSIDE"
	// patience is for what takes seconds, on a busy machine.
	patience = 3 * time.Minute
)

func TestMain(m *testing.M) {
	status, err := testMain(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "imagetest: %v\n", err)
		status = 1
	}
	os.Exit(status)
}

func testMain(m *testing.M) (status int, err error) {
	if os.Getenv(insideVariable) != "" {
		return withEngine(m)
	}
	if _, err := command("docker", "version"); err == nil {
		return m.Run(), nil
	}
	if err := canStart(); err != nil {
		return 0, err
	}
	return apart()
}

// canStart says what this machine lacks for an engine of our own.
func canStart() error {
	const no = "no Docker engine answers (DOCKER_HOST says where), and none can be started here: "
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New(no + "that takes root on Linux")
	}
	for _, program := range []string{"dockerd", "docker", compose, "ip", "iptables"} {
		if _, err := exec.LookPath(program); err != nil {
			return errors.New(no + program + " is missing (Debian: apt-get install docker.io docker-compose iproute2 iptables)")
		}
	}
	return nil
}

// apart runs this program again with a network and mounts of its own. What has to be fetched is fetched before, because
// nothing can be from there.
func apart() (status int, err error) {
	if _, err := kafkaserver.Libs(context.Background()); err != nil {
		return 0, err
	}
	if err := compile(); err != nil {
		return 0, err
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	runtime.LockOSThread() // the death signal comes when this thread ends
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// compile builds what the Dockerfile builds, so that modules are fetched and a build in a container finds most of it
// compiled, as it would the second time on a user's machine.
func compile() error {
	cache, err := compiled()
	if err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		_, err := command("env", "GOCACHE="+cache, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=",
			"go", "-C", root, "build", "-trimpath", "-buildvcs=false", "-o", os.DevNull, "./cmd/relay")
		if err != nil {
			return err
		}
	}
	return nil
}

// compiled is the folder for what compile compiles.
func compiled() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "outboxrelay", "image-build"), err
}

// withEngine runs the tests on an engine that it starts.
func withEngine(m *testing.M) (status int, err error) {
	if _, err := command("ip", "link", "set", "lo", "up"); err != nil {
		return 0, err
	}
	if err := buildKitClient(); err != nil {
		return 0, err
	}
	temp, err := childproc.NewTempDir("relay-docker-", nil)
	if err != nil {
		return 0, err
	}
	engine, err := startEngine(temp)
	if err == nil {
		if err = standIns(temp.Path); err == nil {
			status = m.Run()
		}
		err = errors.Join(err, engine.Stop(syscall.SIGTERM, time.Minute))
	}
	// The engine leaves the mount of a network's namespace.
	_ = syscall.Unmount(filepath.Join(temp.Path, "exec/netns/default"), syscall.MNT_DETACH)
	return status, errors.Join(err, temp.Remove())
}

// startEngine starts dockerd, and has the docker commands of this process use it.
func startEngine(temp *childproc.TempDir) (*childproc.Process, error) {
	socket := "unix://" + filepath.Join(temp.Path, "docker.sock")
	if err := os.Setenv("DOCKER_HOST", socket); err != nil {
		return nil, err
	}
	engine, err := childproc.Start(childproc.Command{
		Path: "dockerd",
		Args: []string{
			"--host", socket, "--data-root", filepath.Join(temp.Path, "data"), "--exec-root", filepath.Join(temp.Path, "exec"),
			"--pidfile", filepath.Join(temp.Path, "dockerd.pid"),
		},
		Dir: temp.Path, Log: filepath.Join(temp.Path, "log"), Temp: temp, DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answers := func(context.Context) error { _, err := command("docker", "version"); return err }
	if err := engine.AwaitReady(ctx, answers); err != nil {
		return nil, errors.Join(err, engine.Stop(syscall.SIGTERM, time.Minute))
	}
	return engine, nil
}

// buildKitClient puts a docker first on PATH that builds with BuildKit: one since version 23 that lacks its plug-in does not.
func buildKitClient() error {
	if err := os.Setenv("DOCKER_BUILDKIT", "1"); err != nil {
		return err
	}
	path := os.Getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		docker := filepath.Join(dir, "docker")
		if _, err := os.Stat(docker); err != nil {
			continue
		}
		version, err := command(docker, "--version")
		if err != nil {
			continue
		}
		var major int
		_, _ = fmt.Sscanf(version, "Docker version %d.", &major)
		if _, err := command(docker, "buildx", "version"); err == nil || major < 23 {
			return os.Setenv("PATH", dir+string(filepath.ListSeparator)+path)
		}
	}
	return errors.New("no docker on PATH can build with BuildKit: install its plug-in (Debian: apt-get install docker-buildx)")
}

// standIns makes the images that Dockerfile and compose.yaml name. Go's modules come from this machine's cache, over HTTP.
func standIns(dir string) error {
	libs, err := kafkaserver.Libs(context.Background())
	if err != nil {
		return err
	}
	java, err := javalibs.Java()
	if err != nil {
		return err
	}
	host, err := bridgeAddress()
	if err != nil {
		return err
	}
	modules, err := command("go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	ports, err := childproc.FreePorts(1)
	if err != nil {
		return err
	}
	proxy := net.JoinHostPort(host, fmt.Sprint(ports[0]))
	files := http.FileServer(http.Dir(filepath.Join(strings.TrimSpace(modules), "cache", "download")))
	go func() {
		// It ends with the process; a build that needs it and can't have it says so.
		_ = http.ListenAndServe(proxy, files)
	}()
	cache, err := compiled()
	if err != nil {
		return err
	}
	_, err = command("bash", "standins.sh", dir, "http://"+proxy, cache, java, libs)
	return err
}

// bridgeAddress is where containers reach this machine.
func bridgeAddress() (string, error) {
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		return "", err
	}
	addresses, err := bridge.Addrs()
	if err != nil || len(addresses) == 0 {
		return "", fmt.Errorf("docker0 has no address (%w)", err)
	}
	host, _, err := net.ParseCIDR(addresses[0].String())
	return host.String(), err
}

// command runs a program and returns what it prints. An error holds that as well.
func command(name string, args ...string) (string, error) {
	var out, messages bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, &out, &messages)
	}
	return out.String(), nil
}
