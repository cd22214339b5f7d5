package settings

import (
	"context"
	"slices"
	"time"

	"outboxrelay/envelope"
)

// TenantsFile looks again and again at the file that the tenants came from. Bad
// content never takes anything away: the last good list stays until the file is
// good again. One goroutine may use it.
type TenantsFile struct {
	settings *Settings
	readFile func(string) ([]byte, error)
	scopes   []envelope.Scope // the last good list
	failure  string           // what was wrong at the last look, or empty
}

// NewTenantsFile begins with the scopes that s holds. s.TenantsFile must be set.
func NewTenantsFile(s *Settings, readFile func(string) ([]byte, error)) *TenantsFile {
	return &TenantsFile{settings: s, readFile: readFile, scopes: s.Scopes}
}

// Watch looks at the file once every interval until ctx ends. It reads the content,
// whatever the file's date says: mounted secrets change by swapping a symbolic link.
//
// It calls report when there is news, and only then: with all scopes to work on from
// now on (the non-tenant scope included) when the list changed or is good again, or
// with an error when the file is newly unreadable, empty or bad. Calls don't overlap.
func (f *TenantsFile) Watch(ctx context.Context, interval time.Duration, report func([]envelope.Scope, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.look(report)
		}
	}
}

func (f *TenantsFile) look(report func([]envelope.Scope, error)) {
	scopes, err := f.read()
	switch {
	case err != nil && err.Error() == f.failure: // told already
	case err != nil:
		f.failure = err.Error()
		report(nil, err)
	case f.failure == "" && slices.Equal(scopes, f.scopes): // as before
	default:
		f.failure, f.scopes = "", scopes
		report(slices.Clone(scopes), nil)
	}
}

// read holds the file to the rules that [Load] has for it.
func (f *TenantsFile) read() ([]envelope.Scope, error) {
	fault := Fault{Names: []string{"RELAY_TENANTS" + fileSuffix}}
	text, problem := readValue(f.readFile, f.settings.TenantsFile)
	if problem != "" {
		fault.Problem = problem
		return nil, fault
	}
	tenants, err := ParseTenantLines(text)
	if err != nil {
		fault.Problem = err.Error()
		return nil, fault
	}
	scopes := withNonTenant(tenants, f.settings.NonTenant)
	if faults := topicFaults(f.settings, scopes); len(faults) > 0 {
		return nil, faults[0]
	}
	return scopes, nil
}
