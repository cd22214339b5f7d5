package envelope

import (
	"strings"
	"testing"
)

// badNames can be neither tenants nor namespaces.
var badNames = map[string]string{
	"empty":             "",
	"Aksara's word":     "__aksara_global__",
	"dot":               ".",
	"two dots":          "..",
	"NUL":               "a\x00b",
	"newline":           "a\n",
	"escape":            "\x1b[31m",
	"delete":            "a\x7f",
	"C1 control":        "a\u0085b",
	"invalid UTF-8":     "a\xff",
	"surrogate in CESU": "\xed\xa0\x80",
}

// goodNames are odd, and can be both.
var goodNames = []string{
	"a", " ", " a ", "...", ".a", "a/b", "/", "..\\", "%2F", "'\"`", "null", "*", "{tenant}", "__AKSARA_GLOBAL__", "__aksara_global__ ",
	"é", "e\u0301", "株式会社", "👩‍💻", "\u200b", "\ufeff", "\ufffd", "\U0010ffff", "a,b", "[1]",
}

func TestTenantRules(t *testing.T) {
	t.Parallel()
	for name, id := range badNames {
		if scope, err := Tenant(id); err == nil || scope.Valid() || !strings.HasPrefix(err.Error(), "tenant id ") {
			t.Errorf("%s: Tenant = %v, %v", name, scope, err)
		}
	}
	for _, id := range append(goodNames, strings.Repeat("a", MaxTenantBytes), strings.Repeat("ü", MaxTenantBytes/2)) {
		scope, err := Tenant(id)
		if err != nil {
			t.Errorf("Tenant(%q): %v", id, err)
			continue
		}
		if got, ok := scope.Tenant(); !ok || got != id || scope.Stored() != id || !scope.Valid() {
			t.Errorf("Tenant(%q) = %q, %t, stored as %q", id, got, ok, scope.Stored())
		}
	}
	for _, id := range []string{strings.Repeat("a", MaxTenantBytes+1), strings.Repeat("ü", MaxTenantBytes/2) + "a"} {
		if _, err := Tenant(id); err == nil || !strings.Contains(err.Error(), "2001 bytes") {
			t.Errorf("Tenant of %d bytes: %v, want a refusal with the length", len(id), err)
		}
	}
}

func TestNamespaceRules(t *testing.T) {
	t.Parallel()
	for name, namespace := range badNames {
		if err := CheckNamespace(namespace); err == nil || !strings.HasPrefix(err.Error(), "namespace ") {
			t.Errorf("%s: CheckNamespace = %v", name, err)
		}
	}
	for _, namespace := range append(goodNames, strings.Repeat("👩", MaxNamespaceChars)) {
		if err := CheckNamespace(namespace); err != nil {
			t.Errorf("CheckNamespace(%q): %v", namespace, err)
		}
	}
	if err := CheckNamespace(strings.Repeat("ü", MaxNamespaceChars+1)); err == nil || !strings.Contains(err.Error(), "256 characters") {
		t.Errorf("CheckNamespace of 256 characters: %v, want a refusal with the length", err)
	}
}

func TestNameErrorsAreShortAndPrintable(t *testing.T) {
	t.Parallel()
	_, err := Tenant("\x1b[31m" + strings.Repeat("a", 10_000))
	if err == nil || len(err.Error()) > 200 || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("error %q, want a short one without escape sequences", err)
	}
}

func TestScopesDiffer(t *testing.T) {
	t.Parallel()
	scopes := []Scope{{}, NonTenant(), tenant(t, "a"), tenant(t, "A"), tenant(t, "a "), tenant(t, "non-tenant scope")}
	texts := []string{"invalid scope", "non-tenant scope", `tenant "a"`, `tenant "A"`, `tenant "a "`, `tenant "non-tenant scope"`}
	seen := map[Scope]bool{}
	for i, scope := range scopes {
		if seen[scope] {
			t.Errorf("%v stands for two scopes", scope)
		}
		seen[scope] = true
		if got := scope.String(); got != texts[i] {
			t.Errorf("String = %s, want %s", got, texts[i])
		}
		if got, want := scope.Valid(), i > 0; got != want {
			t.Errorf("%v: Valid = %t", scope, got)
		}
	}
	if got := NonTenant().Stored(); got != "__aksara_global__" {
		t.Errorf("non-tenant scope is stored as %q", got)
	}
}

func TestInvalidScopeGoesNowhere(t *testing.T) {
	t.Parallel()
	event := testEvent(t)
	event.Scope = Scope{}
	for name, use := range map[string]func(){
		"Stored": func() { _ = Scope{}.Stored() },
		"Source": func() { event.Source() },
		"Record": func() { event.Record() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s took an invalid scope", name)
				}
			}()
			use()
		}()
	}
}
