package settings

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestFileForms(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"RELAY_DATABASE_URL": "host=db", "RELAY_DATABASE_PASSWORD": "p", "RELAY_TENANTS": "a", "RELAY_KAFKA_SASL_PASSWORD": "p",
	}
	var forms []string
	for _, v := range Variables() {
		if !v.File {
			continue
		}
		forms = append(forms, v.Name)
		env := with("RELAY_KAFKA_SASL_MECHANISM", "PLAIN", "RELAY_KAFKA_SASL_USERNAME", "u", "RELAY_KAFKA_SASL_PASSWORD", "q")
		env[v.Name], env[v.Name+"_FILE"] = "", "f"
		mustLoad(t, env, files{"f": good[v.Name] + "\r\n\n"})

		wantFault(t, loadFaults(t, env, files{}), "can't be read: file does not exist", v.Name+"_FILE")
		wantFault(t, loadFaults(t, env, files{"f": "\r\n"}), "empty", v.Name+"_FILE")

		env[v.Name] = good[v.Name]
		wantFault(t, loadFaults(t, env, files{"f": good[v.Name]}), "both are set", v.Name, v.Name+"_FILE")
	}
	want := []string{"RELAY_DATABASE_URL", "RELAY_DATABASE_PASSWORD", "RELAY_TENANTS", "RELAY_KAFKA_SASL_PASSWORD"}
	if !slices.Equal(forms, want) {
		t.Errorf("variables with a file form: %q, want %q", forms, want)
	}
}

func TestFileErrorOfAnotherKind(t *testing.T) {
	t.Parallel()
	read := func(name string) ([]byte, error) { return nil, errors.New("mislaid " + name) }
	_, err := Load(environOf(with("RELAY_DATABASE_PASSWORD_FILE", "f00")), read, host)
	if err == nil || strings.Contains(err.Error(), "f00") || !strings.Contains(err.Error(), "RELAY_DATABASE_PASSWORD_FILE") {
		t.Errorf("Load: %v", err)
	}
}

func TestFirstOfTwoCounts(t *testing.T) {
	t.Parallel()
	environ := append(environOf(minimal()), "RELAY_NAMESPACE=other", "RELAY_WORKERS=", "RELAY_WORKERS=2", "RELAY_", "=C:=x")
	s, err := Load(environ, files{}.read, host)
	if err != nil {
		t.Fatal(err)
	}
	if s.Namespace != "shop" || s.Workers != 2 {
		t.Errorf("namespace %q, workers %d", s.Namespace, s.Workers)
	}
}
