package settings

import "strings"

func (l *loader) kafka(t texts) Kafka {
	return Kafka{
		Brokers:           l.brokers(t.KafkaBrokers),
		Topic:             l.topicTemplate("RELAY_KAFKA_TOPIC", t.KafkaTopic),
		MinInsyncReplicas: l.integer("RELAY_KAFKA_MIN_INSYNC_REPLICAS", t.KafkaMinInsyncReplicas),
		DeliveryTimeout:   l.duration("RELAY_KAFKA_DELIVERY_TIMEOUT", t.KafkaDeliveryTimeout),
		Compression:       l.choice("RELAY_KAFKA_COMPRESSION", t.KafkaCompression),
		ClientID:          l.plain("RELAY_KAFKA_CLIENT_ID", t.KafkaClientID),
		TLS: TLS{
			Enabled:  l.boolean("RELAY_KAFKA_TLS", t.KafkaTLS),
			CAFile:   l.path("RELAY_KAFKA_TLS_CA_FILE", t.KafkaTLSCAFile),
			CertFile: l.path("RELAY_KAFKA_TLS_CERT_FILE", t.KafkaTLSCertFile),
			KeyFile:  l.path("RELAY_KAFKA_TLS_KEY_FILE", t.KafkaTLSKeyFile),
		},
		SASL: SASL{
			Mechanism: l.choice("RELAY_KAFKA_SASL_MECHANISM", t.KafkaSASLMechanism),
			Username:  l.plain("RELAY_KAFKA_SASL_USERNAME", t.KafkaSASLUsername),
			Password:  l.secret("RELAY_KAFKA_SASL_PASSWORD", t.KafkaSASLPassword),
			TokenFile: l.path("RELAY_KAFKA_SASL_TOKEN_FILE", t.KafkaSASLTokenFile),
		},
	}
}

// brokers splits the list. Blanks around an entry mean nothing, as no host has any.
func (l *loader) brokers(text string) []string {
	const name = "RELAY_KAFKA_BROKERS"
	if text == "" && !l.needs(name) {
		return nil
	}
	if text == "" {
		l.fault(name, "is required: give host:port, several separated by commas")
		return nil
	}
	brokers := strings.Split(text, ",")
	for i, broker := range brokers {
		brokers[i] = strings.TrimSpace(broker)
		err := checkAddress(brokers[i], 1)
		if err == nil && !strings.HasPrefix(brokers[i], ":") {
			continue
		}
		if err == nil {
			l.fault(name, "entry %d has no host: give host:port", i+1)
			continue
		}
		l.fault(name, "entry %d is not allowed: %v; give host:port without a scheme", i+1, err)
	}
	return brokers
}
