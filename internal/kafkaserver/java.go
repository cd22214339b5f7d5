package kafkaserver

import (
	"context"
	_ "embed"

	"outboxrelay/internal/javalibs"
)

// version is Kafka's, the same as in pom.xml.
const version = "4.4.0"

// project lists Kafka's jars for Maven.
//
//go:embed pom.xml
var project string

// Libs returns the folder of Kafka's jars, which it fetches at the first call.
func Libs(ctx context.Context) (string, error) {
	return javalibs.Folder(ctx, "kafka-"+version, project)
}

// machine is a JVM to run Kafka's classes with.
type machine struct {
	java       string // the program
	libs       string // folder of Kafka's jars
	throughput bool
}

// flags keep the JVM small and quick to start unless it is to be measured.
func (m machine) flags() []string {
	flags := []string{"-cp", javalibs.ClassPath(m.libs), "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError"}
	if m.throughput {
		return append(flags, "-Xms1g", "-Xmx1g")
	}
	return append(flags, "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
}
