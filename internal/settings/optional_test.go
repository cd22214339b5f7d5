package settings

import "testing"

// What a command does without need not be set, and must be right where it is.
func TestOptionalVariables(t *testing.T) {
	t.Parallel()
	optional := []string{
		"RELAY_NAMESPACE", "RELAY_TENANTS", "RELAY_WORKER_ID", "RELAY_KAFKA_BROKERS", "RELAY_TRANSACTIONAL_ID", "RELAY_INSTANCE",
	}
	load := func(env map[string]string, optional ...string) (*Settings, Faults) {
		t.Helper()
		env["RELAY_DATABASE_URL"], env["RELAY_DELIVERY"] = "postgres://owner@db/app", "exactly-once"
		s, err := Load(environOf(env), files{}.read, "", optional...)
		faults, _ := err.(Faults)
		return s, faults
	}
	s, faults := load(map[string]string{}, optional...)
	if faults != nil || s.Database.URL.Value() == "" || s.Scopes != nil || s.Kafka.Brokers != nil {
		t.Fatalf("settings %+v, faults %q", s, faults)
	}
	for i, name := range optional {
		others := append(append([]string{}, optional[:i]...), optional[i+1:]...)
		if _, faults := load(map[string]string{}, others...); len(faults) != 1 || faults[0].Names[0] != name {
			t.Errorf("without %s: %q", name, faults)
		}
		wrong := "\n"
		if _, faults := load(map[string]string{name: wrong}, optional...); len(faults) != 1 || faults[0].Names[0] != name {
			t.Errorf("%s = %q: %q", name, wrong, faults)
		}
	}
}
