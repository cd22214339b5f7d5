package settings

import "testing"

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"RELAY_TENANT":                 "did you mean RELAY_TENANTS?",
		"RELAY_KAFKA_BROKER":           "did you mean RELAY_KAFKA_BROKERS?",
		"RELAY_LOGLEVEL":               "did you mean RELAY_LOG_LEVEL?",
		"RELAY_BATCH_SIZE":             "is unknown",
		"RELAY_DATABASE_PASWORD_FILE":  "did you mean RELAY_DATABASE_PASSWORD_FILE?",
		"RELAY_NAMESPACE_FILE":         "RELAY_NAMESPACE can't be given in a file",
		"RELAY_TEST_DATABASE_URL":      "is unknown",
		"RELAY_namespace":              "is unknown",
		"RELAY_":                       "is unknown",
		"RELAY_PORTS":                  "is unknown",
		"RELAY_PORT_8080":              "is unknown",
		"RELAY_PORT_8080_TCP_ADDRESS":  "is unknown",
		"RELAY_PORT_HTTP_TCP":          "is unknown",
		"RELAY_HTTP_PORT":              "is unknown",
		"RELAY_KAFKA_PORT":             "is unknown",
		"RELAY_HTTP_SERVICE_PORT":      "is unknown",
		"RELAY_SERVICE":                "is unknown",
		"RELAY_SERVICE_HOSTS":          "is unknown",
		"RELAY_HTTP_PORT_8080_TCP":     "is unknown",
		"RELAY_KAFKA_SASL_MECHANISMS_": "did you mean RELAY_KAFKA_SASL_MECHANISM?",
	} {
		wantFault(t, loadFaults(t, with(name, "x"), nil), want, name)
	}
}

func TestOtherNamesAreIgnored(t *testing.T) {
	t.Parallel()
	mustLoad(t, with("relay_namespace", "x", "RELAYED", "x", "MY_RELAY_X", "x", "RELAY_TENANT", ""), nil)
}

// TestNamesOfKubernetes holds what a container gets for Services called relay and
// relay-http in its namespace.
func TestNamesOfKubernetes(t *testing.T) {
	t.Parallel()
	mustLoad(t, with(
		"RELAY_SERVICE_HOST", "10.0.0.1",
		"RELAY_SERVICE_PORT", "8080",
		"RELAY_SERVICE_PORT_HTTP", "8080",
		"RELAY_SERVICE_PORT_HTTP_METRICS", "9090",
		"RELAY_PORT", "tcp://10.0.0.1:8080",
		"RELAY_PORT_8080_TCP", "tcp://10.0.0.1:8080",
		"RELAY_PORT_8080_TCP_ADDR", "10.0.0.1",
		"RELAY_PORT_8080_TCP_PORT", "8080",
		"RELAY_PORT_8080_TCP_PROTO", "tcp",
		"RELAY_PORT_53_UDP", "udp://10.0.0.1:53",
		"RELAY_PORT_53_UDP_ADDR", "10.0.0.1",
		"RELAY_PORT_9_SCTP_PORT", "9",
		"RELAY_HTTP_SERVICE_HOST", "10.0.0.2",
		"RELAY_HTTP_SERVICE_PORT", "80",
		"RELAY_HTTP_SERVICE_PORT_WEB", "80",
		"RELAY_HTTP_PORT", "tcp://10.0.0.2:80",
		"RELAY_HTTP_PORT_80_TCP_ADDR", "10.0.0.2",
	), nil)
}
