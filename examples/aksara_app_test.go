package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// The application's page, line by line on the real Aksara: in an empty database its tables are made and its Operations get into
// the outbox. Only the environment that the page makes first stands ready here, with the same version.
func TestAksaraApplication(t *testing.T) {
	t.Parallel()
	steps := pageSteps(t)
	wanted := strings.TrimSpace(read(t, "aksara-app/requirements.txt"))
	if !strings.Contains(read(t, "../internal/aksaratest/requirements.txt"), "\n"+wanted+"\n") || !strings.HasPrefix(wanted, "aksara-framework==") {
		t.Fatalf("the application wants %q, which is not what the tests run on", wanted)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "shop.py"), []byte(read(t, "aksara-app/shop.py")), 0o600); err != nil {
		t.Fatal(err)
	}
	db := pgtest.Database(t, pgtest.Setup{Name: "shop"})
	output := &relayproc.Log{}
	shell := exec.Command("sh", "-e", "-c", strings.Join(steps, "\n"))
	shell.Dir, shell.Stdout, shell.Stderr = folder, output, output
	shell.Env = []string{
		"PATH=" + filepath.Dir(aksaratest.Install(t)) + ":" + os.Getenv("PATH"), "HOME=" + folder, "DATABASE_URL=" + db.URL,
	}
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- shell.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // an error says that it has ended
		<-ended
		if t.Failed() {
			t.Logf("the application's output:\n%s", output)
		}
	})
	pool := db.Pool(t)
	relayproc.Until(t, "events of finished operations of both tenants", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the application has ended: %v", err)
		default:
		}
		var tenants string
		err := pool.QueryRow(t.Context(), `select coalesce(string_agg(distinct o.tenant_scope, ','), '') from aksara_operation_outbox e
			join aksara_operations o on o.id = e.operation_id
			where o.application_namespace = 'orders' and e.payload ->> 'to_state' = 'succeeded'`).Scan(&tenants)
		if err == nil && tenants != "acme,globex" {
			err = fmt.Errorf("there are some of %q", tenants)
		}
		return err
	})
}

// pageSteps are the commands of the application's page, but for those that make its environment and name its database.
func pageSteps(t *testing.T) (steps []string) {
	t.Helper()
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(read(t, "aksara-app/README.md"))
	if block == nil {
		t.Fatal("the page holds no commands")
	}
	made := 0
	for line := range strings.Lines(block[1]) {
		if strings.HasPrefix(line, "python3 -m venv") || strings.HasPrefix(line, "pip install -r requirements.txt") || strings.HasPrefix(line, "export DATABASE_URL=") {
			made++
			continue
		}
		steps = append(steps, line)
	}
	if made != 3 || len(steps) != 3 {
		t.Fatalf("the page has other steps: %q", steps)
	}
	return steps
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
