package envelope

import (
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxTenantBytes is the longest tenant id, in bytes of UTF-8.
	MaxTenantBytes = 2000
	// MaxNamespaceChars is the longest namespace, in characters: what Aksara's
	// column holds.
	MaxNamespaceChars = 255

	// reserved is what Aksara stores in tenant_scope for "no tenant". It refuses
	// the word as a tenant id, exactly and case-sensitively, and so do we.
	reserved = "__aksara_global__"
)

// Scope is whose events are meant: those of one tenant, or those that belong to no
// tenant. There is no scope that means all. The zero value is invalid and belongs
// to nobody. Scopes are comparable and serve as map keys.
type Scope struct {
	kind   scopeKind
	tenant string
}

type scopeKind uint8

const (
	invalidScope scopeKind = iota
	tenantScope
	nonTenantScope
)

// Tenant is the scope of one tenant. The id is taken as it is: no case folding, no
// trimming. It errs for ids that can't be configured: empty, Aksara's reserved
// word, "." and "..", control characters, invalid UTF-8, over [MaxTenantBytes].
func Tenant(id string) (Scope, error) {
	if err := checkName(id); err != nil {
		return Scope{}, fmt.Errorf("tenant id %w", err)
	}
	if len(id) > MaxTenantBytes {
		return Scope{}, fmt.Errorf("tenant id is %d bytes long, %d at most", len(id), MaxTenantBytes)
	}
	return Scope{kind: tenantScope, tenant: id}, nil
}

// NonTenant is the scope of the events that belong to no tenant.
func NonTenant() Scope { return Scope{kind: nonTenantScope} }

// Stored gives the scope that [Scope.Stored] gave this text for.
func Stored(text string) (Scope, error) {
	if text == reserved {
		return NonTenant(), nil
	}
	return Tenant(text)
}

// Valid is false for the zero value only.
func (s Scope) Valid() bool { return s.kind != invalidScope }

// Tenant is the tenant's id; ok is false for the non-tenant scope.
func (s Scope) Tenant() (id string, ok bool) { return s.tenant, s.kind == tenantScope }

// Stored is the scope as Aksara's tenant_scope columns and its row security
// setting hold it. It panics for the zero value, which must never reach a database.
func (s Scope) Stored() string {
	switch s.kind {
	case tenantScope:
		return s.tenant
	case nonTenantScope:
		return reserved
	default:
		panic("envelope: an invalid scope was used")
	}
}

// String names the scope for people; a tenant's id is quoted.
func (s Scope) String() string {
	switch s.kind {
	case tenantScope:
		return "tenant " + strconv.Quote(s.tenant)
	case nonTenantScope:
		return "non-tenant scope"
	default:
		return "invalid scope"
	}
}

// CheckNamespace errs for a namespace that can't be configured: empty, Aksara's
// reserved word, "." and "..", control characters, invalid UTF-8, over
// [MaxNamespaceChars].
func CheckNamespace(namespace string) error {
	if err := checkName(namespace); err != nil {
		return fmt.Errorf("namespace %w", err)
	}
	if n := utf8.RuneCountInString(namespace); n > MaxNamespaceChars {
		return fmt.Errorf("namespace is %d characters long, %d at most", n, MaxNamespaceChars)
	}
	return nil
}

// checkName holds the rules that tenants and namespaces share. "." and ".." would
// vanish from a source when a consumer normalises it as a URI path.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case name == reserved:
		return fmt.Errorf("is %s, which Aksara reserves for events without a tenant", reserved)
	case name == "." || name == "..":
		return fmt.Errorf("is %q, which can't stand in a source path", name)
	case !utf8.ValidString(name):
		return errors.New("is not valid UTF-8")
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("%.64q holds the control character %U", name, r)
		}
	}
	return nil
}
