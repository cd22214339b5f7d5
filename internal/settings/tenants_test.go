package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"outboxrelay/envelope"
)

func ids(scopes []envelope.Scope) []string {
	out := []string{}
	for _, scope := range scopes {
		id, _ := scope.Tenant()
		out = append(out, id)
	}
	return out
}

func TestParseTenants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		parse func(string) ([]envelope.Scope, error)
		text  string
		want  []string // nil for an error
		err   string
	}{
		{"one", ParseTenants, "a", []string{"a"}, ""},
		{"several", ParseTenants, "b,a,B", []string{"b", "a", "B"}, ""},
		{"odd ones", ParseTenants, `a b,c/d,e:f,g%20h,i"j,k'l,😀,$HOME,\,{x}`, []string{"a b", "c/d", "e:f", "g%20h", `i"j`, "k'l", "😀", "$HOME", `\`, "{x}"}, ""},
		{"an array", ParseTenants, `["a,b"," c ","[d]","\u00e9"]`, []string{"a,b", " c ", "[d]", "é"}, ""},
		{"an array with space", ParseTenants, "[\n \"a\"\n]\n", []string{"a"}, ""},
		{"an empty array", ParseTenants, "[]", []string{}, ""},
		{"longest", ParseTenants, strings.Repeat("é", 1000), []string{strings.Repeat("é", 1000)}, ""},

		{"too long", ParseTenants, "a," + strings.Repeat("é", 1000) + "x", nil, "entry 2: tenant id is 2001 bytes long"},
		{"empty", ParseTenants, "", nil, "entry 1: tenant id is empty"},
		{"trailing comma", ParseTenants, "a,", nil, "entry 2: tenant id is empty"},
		{"blank before", ParseTenants, "a, b", nil, "entry 2: blank beside a comma"},
		{"blank behind", ParseTenants, "a\t,b", nil, "entry 1: blank beside a comma"},
		{"twice", ParseTenants, "a,b,a", nil, `entry 3: tenant "a" stands there already, as entry 1`},
		{"twice in an array", ParseTenants, `["a","\u0061"]`, nil, "entry 2"},
		{"reserved", ParseTenants, "__aksara_global__", nil, "reserves"},
		{"dots", ParseTenants, "a,..", nil, "entry 2"},
		{"invalid UTF-8", ParseTenants, "a\xff", nil, "UTF-8"},
		{"invalid UTF-8 in an array", ParseTenants, "[\"a\xff\"]", nil, "UTF-8"},
		{"control character", ParseTenants, "a\x1bb", nil, "control"},
		{"NUL in an array", ParseTenants, `["a\u0000"]`, nil, "control"},
		{"numbers", ParseTenants, `[1]`, nil, "no JSON array of strings"},
		{"null", ParseTenants, `["a",null]`, nil, "entry 2: tenant id is empty"},
		{"open array", ParseTenants, `["a"`, nil, "no JSON array of strings (look at byte 4)"},
		{"more than an array", ParseTenants, `["a"] x`, nil, "no JSON array"},

		{"lines", ParseTenantLines, "a\nb c\n", []string{"a", "b c"}, ""},
		{"lines of another system", ParseTenantLines, "a\r\n\r\nb\r\n", []string{"a", "b"}, ""},
		{"blank lines", ParseTenantLines, "\n \n\t\na\n\n\nb", []string{"a", "b"}, ""},
		{"commas in lines", ParseTenantLines, "a,b\nc", []string{"a,b", "c"}, ""},
		{"byte order mark", ParseTenantLines, "\ufeffa\nb", []string{"a", "b"}, ""},
		{"array in a file", ParseTenantLines, `["a","b"]`, []string{"a", "b"}, ""},
		{"blank in a line", ParseTenantLines, "a\n b\n", nil, "entry 2: blank beside a line end"},
		{"NUL in a line", ParseTenantLines, "a\x00\n", nil, "control"},
		{"twice in lines", ParseTenantLines, "a\na", nil, "entry 2"},
		{"empty file", ParseTenantLines, "", nil, "holds no tenant"},
		{"blank file", ParseTenantLines, "\n \n", nil, "holds no tenant"},
		{"empty array in a file", ParseTenantLines, "[]", nil, "holds no tenant"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.parse(c.text)
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), c.err) || got != nil {
					t.Errorf("got %q, %v; want an error with %q", ids(got), err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(ids(got), c.want) {
				t.Errorf("got %q, %v; want %q", ids(got), err, c.want)
			}
		})
	}
}

func TestManyBadTenantsMakeOneShortError(t *testing.T) {
	t.Parallel()
	_, err := ParseTenants(strings.Repeat("a,", 10_000) + strings.Repeat("b", 3000))
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "and 9995 more") {
		t.Errorf("error %v", err)
	}
}

// FuzzParseTenants wants every list that is taken to come back from a JSON array.
func FuzzParseTenants(f *testing.F) {
	for _, text := range []string{"a,b", `["a","b"]`, "a\nb", "[", `["\ud800"]`, "\ufeff[", ",", "a,a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) ([]envelope.Scope, error){ParseTenants, ParseTenantLines} {
			scopes, err := parse(text)
			if err != nil {
				continue
			}
			array, err := json.Marshal(ids(scopes))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ParseTenants(string(array)); err != nil || !slices.Equal(again, scopes) {
				t.Errorf("%q became %q, then %q, %v", text, ids(scopes), ids(again), err)
			}
			for i, scope := range scopes {
				if slices.Contains(scopes[:i], scope) {
					t.Error(fmt.Sprint("twice: ", scope))
				}
			}
		}
	})
}
