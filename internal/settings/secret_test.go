package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

// outputs are all the ways by which a value might get out.
func outputs(t *testing.T, v any) string {
	t.Helper()
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&out, verb+"\n", v)
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	slog.New(slog.NewTextHandler(&out, nil)).Info("", "v", v)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("", "v", v)
	return out.String()
}

func TestSecretNeverShows(t *testing.T) {
	t.Parallel()
	s := NewSecret("hunter2")
	type inside struct{ private, Public any }
	type direct struct{ private Secret }
	for _, v := range []any{s, &s, []Secret{s}, map[string]Secret{"a": s}, inside{s, s}, direct{s}, &direct{s}} {
		out := outputs(t, v)
		if strings.Contains(out, "hunter2") || strings.Contains(out, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("%T shows it: %s", v, out)
		}
	}
	if got := fmt.Sprintf("%v %q", s, s); got != "*** ***" {
		t.Errorf("printed as %s", got)
	}
	if got := fmt.Sprintf("[%v]", Secret{}); got != "[]" {
		t.Errorf("no secret is printed as %s", got)
	}
	if s.Value() != "hunter2" || !s.IsSet() || (Secret{}).Value() != "" || (Secret{}).IsSet() {
		t.Error("Value or IsSet is wrong")
	}
}

// TestNoSecretInAnyOutput puts passwords that are hard for a URL into each place
// that may hold one, well and badly formed, and looks for their parts everywhere.
func TestNoSecretInAnyOutput(t *testing.T) {
	t.Parallel()
	check := func(env map[string]string, f files) {
		t.Helper()
		s, err := Load(environOf(env), f.read, host)
		var out string
		if err != nil {
			out = outputs(t, err) + err.Error()
			for inner := err; inner != nil; inner = errors.Unwrap(inner) {
				out += inner.Error()
			}
		} else {
			out = outputs(t, s) + outputs(t, Describe(s))
		}
		for _, part := range []string{"s3cr", "pa55"} {
			if strings.Contains(out, part) {
				t.Errorf("%v shows %s in %s", env, part, out)
			}
		}
	}
	for _, special := range strings.Split("# % [ ] { } @ : / ? & = \\ ' \" %zz %00 , ; $ \x01 é", " ") {
		password := "s3cr" + special + "pa55"
		for _, form := range []string{
			"postgres://relay:%s@db/app", "postgres://relay:%s@db:x/app", "postgres://relay:%s@db:99999/app", "postgres://relay:%s@/app",
			"postgres://relay:%s", "postgres://%s", "postgresql://db/app?password=%s", "postgres://db/app?sslmode=%s", "%s", "password=%s port=x",
			"host=db password='%s", "host=db password='%s'", "http://relay:%s@db/app", "host=db port=%s",
		} {
			check(with("RELAY_DATABASE_URL", fmt.Sprintf(form, password)), nil)
			check(with("RELAY_DATABASE_URL", fmt.Sprintf(form, url.QueryEscape(password))), nil)
			check(with("RELAY_DATABASE_URL", "", "RELAY_DATABASE_URL_FILE", "f"), files{"f": fmt.Sprintf(form, password)})
		}
		check(with("RELAY_DATABASE_PASSWORD", password), nil)
		check(with("RELAY_DATABASE_PASSWORD_FILE", password), nil) // the secret where its file's name belongs
		check(with("RELAY_DATABASE_PASSWORD", password, "RELAY_DATABASE_PASSWORD_FILE", "f"), files{"f": password})
		check(with("RELAY_KAFKA_SASL_PASSWORD", password), nil)
		check(with("RELAY_KAFKA_SASL_MECHANISM", "PLAIN", "RELAY_KAFKA_SASL_USERNAME", "u", "RELAY_KAFKA_SASL_PASSWORD", password), nil)
		check(with("RELAY_KAFKA_BROKERS", "kafka://u:"+password+"@k:9092"), nil)
	}
}

func TestSecretReadsItsFileAgain(t *testing.T) {
	t.Parallel()
	f := files{"url": "postgres://relay@db/app\n", "pw": "old\n"}
	env := with("RELAY_DATABASE_URL", "", "RELAY_DATABASE_URL_FILE", "url", "RELAY_DATABASE_PASSWORD_FILE", "pw")
	d := mustLoad(t, env, f).Database
	f["pw"], f["url"] = "new\r\n", "postgres://relay@other/app"
	url, password, err := d.Read(f.read)
	if url != "postgres://relay@other/app" || password != "new" || err != nil {
		t.Errorf("Read = %q, %q, %v", url, password, err)
	}
	if d.Password.Value() != "old" || d.Password.File() != "pw" {
		t.Errorf("loaded %q from %q", d.Password.Value(), d.Password.File())
	}

	f["url"] = "postgres://relay:pa55@db:x/app"
	if _, _, err := d.Read(f.read); err == nil || !strings.Contains(err.Error(), "RELAY_DATABASE_URL") || strings.Contains(err.Error(), "pa55") {
		t.Errorf("Read of a bad URL: %v", err)
	}
	delete(f, "url")
	if _, _, err := d.Read(f.read); err == nil || !strings.Contains(err.Error(), "RELAY_DATABASE_URL_FILE") {
		t.Errorf("Read of no file: %v", err)
	}
}
