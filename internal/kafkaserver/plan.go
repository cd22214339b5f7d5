package kafkaserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"outboxrelay/internal/childproc"
)

// controllerID is the node id of a controller apart from the brokers.
const controllerID = 100

// Listener names. Brokers talk to each other past the clients' listener, so that a proxy or ACLs there do not concern them.
const (
	clientsListener    = "CLIENTS"
	internalListener   = "INTERNAL"
	controllerListener = "CONTROLLER"
)

// loggingConfig prints warnings, and the line that tells that a node has started.
const loggingConfig = `<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c %m%n"/></Console></Appenders>
  <Loggers>
    <Logger name="kafka.server.KafkaRaftServer" level="INFO"/>
    <Root level="WARN"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
`

// common are every node's properties. Small topics of Kafka's own and short sessions make starts and restarts quick; a
// shorter session would end a live broker's on a busy machine.
var common = []string{
	"controller.listener.names=" + controllerListener,
	"inter.broker.listener.name=" + internalListener,
	"auto.create.topics.enable=false",
	"broker.heartbeat.interval.ms=500",
	"broker.session.timeout.ms=3000",
	"group.initial.rebalance.delay.ms=0",
	"log.cleaner.dedupe.buffer.size=16777216",
	"offsets.topic.num.partitions=4",
	"transaction.state.log.num.partitions=4",
}

var single = []string{
	"offsets.topic.replication.factor=1",
	"transaction.state.log.min.isr=1",
	"transaction.state.log.replication.factor=1",
}

var replicated = []string{
	"controller.quorum.election.timeout.ms=500",
	"controller.quorum.fetch.timeout.ms=1000",
	"default.replication.factor=3",
	"min.insync.replicas=2",
	"offsets.topic.replication.factor=3",
	"replica.lag.time.max.ms=3000",
	"transaction.state.log.min.isr=2",
	"transaction.state.log.replication.factor=3",
	"unclean.leader.election.enable=false",
}

// plan lays out the nodes' folders and properties.
func (c *Cluster) plan(options Options, vm machine) (err error) {
	settings := append([]string{}, common...)
	switch options.Brokers {
	case 0, 1:
		options.Brokers = 1
		settings = append(settings, single...)
	case 3:
		settings = append(settings, replicated...)
	default:
		return fmt.Errorf("a cluster has 1 broker or 3, not %d", options.Brokers)
	}
	protocol := "PLAINTEXT"
	if options.Secure {
		protocol = "SASL_SSL"
		if c.secrets, err = newSecrets(c.temp.Path); err != nil {
			return err
		}
		settings = append(settings, c.secrets.settings()...)
	}
	settings = append(settings, fmt.Sprintf("listener.security.protocol.map=%s:%s,%s:PLAINTEXT,%s:PLAINTEXT",
		clientsListener, protocol, internalListener, controllerListener))
	return c.layOut(options, settings, vm)
}

func (c *Cluster) layOut(options Options, settings []string, vm machine) error {
	free, err := childproc.FreePorts(1 + 2*options.Brokers)
	if err != nil {
		return err
	}
	controllerPort, free := free[0], free[1:]
	if options.Brokers == 1 {
		settings = append(settings, voters(1, controllerPort))
	} else {
		settings = append(settings, voters(controllerID, controllerPort))
		c.controller = &node{id: controllerID, ports: ports{controller: controllerPort}}
		c.controller.properties = append(c.controller.listeners(), settings...)
	}
	for id := 1; id <= options.Brokers; id++ {
		broker := &node{id: id, ports: ports{clients: free[2*id-2], internal: free[2*id-1], advertised: options.Advertised[id]}}
		if options.Brokers == 1 {
			broker.ports.controller = controllerPort
		}
		broker.properties = append(broker.listeners(), settings...)
		broker.properties = append(broker.properties, options.Settings...)
		broker.properties = append(broker.properties, options.BrokerSettings[id]...)
		c.brokers = append(c.brokers, broker)
	}
	for _, n := range c.nodes() {
		n.vm, n.temp, n.secrets = vm, c.temp, c.secrets
		if err := n.makeDir(filepath.Join(c.temp.Path, fmt.Sprintf("node-%d", n.id))); err != nil {
			return err
		}
	}
	return nil
}

func voters(id, port int) string {
	return fmt.Sprintf("controller.quorum.voters=%d@%s", id, childproc.Loopback(port))
}

// ports are a node's, 0 for a listener that it has not.
type ports struct {
	clients, internal, controller int
	advertised                    int // where clients are told to connect, if not to clients
}

// listeners are the properties by which a node differs from the others.
func (n *node) listeners() []string {
	var roles, listening, advertised []string
	if p := n.ports; p.clients != 0 {
		roles = append(roles, "broker")
		listening = append(listening, at(clientsListener, p.clients), at(internalListener, p.internal))
		reached := p.clients
		if p.advertised != 0 {
			reached = p.advertised
		}
		advertised = append(advertised, at(clientsListener, reached), at(internalListener, p.internal))
	}
	if n.ports.controller != 0 {
		roles = append(roles, "controller")
		listening = append(listening, at(controllerListener, n.ports.controller))
	}
	properties := []string{
		fmt.Sprintf("node.id=%d", n.id),
		"process.roles=" + strings.Join(roles, ","),
		"listeners=" + strings.Join(listening, ","),
	}
	if advertised != nil {
		properties = append(properties, "advertised.listeners="+strings.Join(advertised, ","))
	}
	return properties
}

func at(listener string, port int) string { return listener + "://" + childproc.Loopback(port) }

// makeDir makes the node's folder with its configuration.
func (n *node) makeDir(dir string) error {
	n.dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := write(dir, loggingFile, loggingConfig); err != nil {
		return err
	}
	properties := append(n.properties, "log.dirs="+filepath.Join(dir, "data"))
	return write(dir, propertiesFile, strings.Join(properties, "\n")+"\n")
}
