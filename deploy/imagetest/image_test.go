package imagetest

import (
	"archive/tar"
	"crypto/x509"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	image   = "relay:imagetest"
	version = "v0.0.0-imagetest"
	mostMiB = 20
)

// build builds the image, once.
var build = sync.OnceValue(func() error { return buildFrom(root, image) })

func buildFrom(sources, tag string, options ...string) error {
	args := append([]string{"build", "--tag", tag, "--build-arg", "VERSION=" + version, "--build-arg", "REVISION=cafe"}, options...)
	_, err := command("docker", append(args, sources)...)
	return err
}

func mustBuild(t *testing.T) {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
}

// docker runs a docker command that must succeed, and returns what it prints.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command("docker", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func inspect(t *testing.T, what, format string) string {
	t.Helper()
	return docker(t, "inspect", "--format", format, what)
}

func TestImageIsSmallAndSaysWhatItIs(t *testing.T) {
	mustBuild(t)
	size, err := strconv.Atoi(inspect(t, image, "{{.Size}}"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB", float64(size)/(1<<20))
	if size >= mostMiB<<20 {
		t.Errorf("the image has %d bytes, %d MiB is too much", size, mostMiB)
	}
	const label = `{{index .Config.Labels "org.opencontainers.image.%"}}`
	for format, want := range map[string]string{
		"{{.Config.User}}":                         "65532:65532",
		"{{.Config.Entrypoint}}":                   "[/relay]",
		"{{.Config.Healthcheck.Test}}":             "[CMD /relay healthy]",
		"{{.Os}}/{{.Architecture}}":                "linux/" + inspect(t, image, "{{.Architecture}}"),
		strings.Replace(label, "%", "version", 1):  version,
		strings.Replace(label, "%", "revision", 1): "cafe",
		strings.Replace(label, "%", "licenses", 1): "MIT",
		strings.Replace(label, "%", "title", 1):    "relay",
	} {
		if got := inspect(t, image, format); got != want {
			t.Errorf("%s is %q, want %q", format, got, want)
		}
	}
	if got := docker(t, "run", "--rm", image, "version"); !strings.HasPrefix(got, "relay "+version+", commit cafe, go") {
		t.Errorf("relay version prints %q", got)
	}
}

// No shell, no library, no other program: the relay, and authorities that it can read.
func TestImageHoldsNothingElse(t *testing.T) {
	mustBuild(t)
	files := contents(t, image)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"etc/ssl/certs/ca-certificates.crt", "relay"}; !slices.Equal(names, want) {
		t.Errorf("the image holds %v, want %v", names, want)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("the authorities are no PEM certificates")
	}
}

// The same sources make the same layer, in another folder at another time.
func TestSecondBuildIsTheSame(t *testing.T) {
	mustBuild(t)
	const again = image + "-again"
	sources := t.TempDir()
	if err := os.CopyFS(sources, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	// A file that the program has no part of has it built again, not taken from the first build.
	write(t, sources, "another", "file")
	if err := buildFrom(sources, again); err != nil {
		t.Fatal(err)
	}
	const layers = "{{.RootFS.Layers}}"
	if first, second := inspect(t, image, layers), inspect(t, again, layers); first != second {
		t.Errorf("layers %s, then %s", first, second)
	}
}

func TestImageForTheOtherPlatform(t *testing.T) {
	mustBuild(t)
	const other = image + "-other"
	platform, machine := "arm64", elf.EM_AARCH64
	if inspect(t, image, "{{.Architecture}}") == platform {
		platform, machine = "amd64", elf.EM_X86_64
	}
	if err := buildFrom(root, other, "--platform", "linux/"+platform); err != nil {
		t.Fatal(err)
	}
	if got := inspect(t, other, "{{.Architecture}}"); got != platform {
		t.Errorf("the image is for %s, want %s", got, platform)
	}
	path := filepath.Join(t.TempDir(), "relay")
	if err := os.WriteFile(path, contents(t, other)["relay"], 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if libraries, err := program.ImportedLibraries(); program.Machine != machine || len(libraries) > 0 || err != nil {
		t.Errorf("the program is for %s and needs %v (%v)", program.Machine, libraries, err)
	}
}

// contents are an image's files but those that the engine adds to a container, which are empty.
func contents(t *testing.T, image string) map[string][]byte {
	t.Helper()
	container := docker(t, "create", image)
	defer docker(t, "rm", container)
	cmd := exec.Command("docker", "export", container)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(pipe); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg && len(content) > 0 {
			files[header.Name] = content
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return files
}
