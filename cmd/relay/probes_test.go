package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"outboxrelay/envelope"
	"outboxrelay/internal/childproc"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/monitor"
	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
	"outboxrelay/relay/relaytest"
)

// ask gives what a process answers.
func ask(p *process, path string) (status int, body string) {
	w := httptest.NewRecorder()
	p.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// simulated runs a relay in virtual time on a store that test decides on.
func simulated(t *testing.T, test func(p *process, store *relaytest.Store)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		acme, err := envelope.Tenant("acme")
		if err != nil {
			t.Fatal(err)
		}
		store := &relaytest.Store{}
		store.Add(namespace, acme, uuid.New(), 3)
		r, err := relay.New(relay.Config{Namespace: namespace, WorkerID: "worker"}, store, &relaytest.Sink{}, relay.Unobserved{})
		if err != nil {
			t.Fatal(err)
		}
		r.SetScopes([]envelope.Scope{acme})
		ctx, cancel := context.WithCancel(t.Context())
		p := &process{
			settings: &settings.Settings{}, relay: r, metrics: monitor.NewMetrics("v", "go", 1), board: monitor.NewBoard(monitor.About{}),
		}
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = r.Run(ctx) })
		test(p, store)
	})
}

// A loop that makes no step is not alive, once that lasts longer than anything may.
func TestLivezOfALoopThatHangs(t *testing.T) {
	simulated(t, func(p *process, store *relaytest.Store) {
		free := make(chan struct{})
		store.SetFault(func(context.Context, relaytest.Call, bool) error { <-free; return nil })
		time.Sleep(2*relay.DefaultLease + relay.DefaultGrace)
		if status, body := ask(p, "/livez"); status != http.StatusOK {
			t.Errorf("/livez answers %d too early: %s", status, body)
		}
		time.Sleep(time.Minute)
		status, body := ask(p, "/livez")
		if status != http.StatusServiceUnavailable || !strings.HasPrefix(body, "a worker has made no step for ") {
			t.Errorf("/livez: %d, %s", status, body)
		}
		close(free)
		time.Sleep(time.Second)
		if status, body := ask(p, "/livez"); status != http.StatusOK {
			t.Errorf("/livez after it went on: %d, %s", status, body)
		}
	})
}

// While the database is gone the relay isn't ready, and to start it anew would not help.
func TestProbesWhileTheDatabaseIsGone(t *testing.T) {
	simulated(t, func(p *process, store *relaytest.Store) {
		store.SetFault(func(context.Context, relaytest.Call, bool) error { return errors.New("connection refused") })
		for range 20 {
			time.Sleep(time.Minute)
			if status, body := ask(p, "/livez"); status != http.StatusOK {
				t.Fatalf("/livez: %d, %s", status, body)
			}
			const want = "the database does not do what is needed\n" // and no error text
			if status, body := ask(p, "/readyz"); status != http.StatusServiceUnavailable || body != want {
				t.Fatalf("/readyz: %d, %s", status, body)
			}
		}
		store.SetFault(nil)
		time.Sleep(time.Minute)
		if err := p.databaseError(); err != nil {
			t.Errorf("after the database is back: %v", err)
		}
	})
}

// A relay that worked tells that the broker is gone, lives on, and is ready again by itself.
func TestProbesWhileTheBrokerIsGone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s.env["RELAY_KAFKA_BROKERS"] = childproc.Loopback(ports[0])
	broker := kafkatest.Fake(t, kfake.Ports(ports[0]), kfake.SeedTopics(1, s.topic))
	r := startRelay(t, s.env)
	eventually(t, r.ready)
	broker.Cluster.Close()
	s.fill(t, namespace)
	r.awaitReason(t, "broker")
	if _, err := r.get("/livez"); err != nil {
		t.Errorf("/livez: %v", err)
	}
	broker = kafkatest.Fake(t, kfake.Ports(ports[0]), kfake.SeedTopics(1, s.topic))
	r.delivered(t, broker.Broker, s.topic)
}

// running runs a process until the test ends.
func (p *process) running(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// says waits until /readyz answers 503 with a text.
func (p *process) says(t *testing.T, want string) {
	t.Helper()
	eventually(t, func() error {
		if status, body := ask(p, "/readyz"); status != http.StatusServiceUnavailable || body != want+"\n" {
			return fmt.Errorf("/readyz: %d, %s", status, body)
		}
		return nil
	})
}

// A relay that starts blames nobody before it has heard from the database.
func TestReadyzBeforeTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	silent := newDoorman(t)
	p := newTestProcess(t, variables("postgres://relay@"+silent.Addr().String()+"/app", []string{"127.0.0.1:1"}, "events"))
	p.running(t)
	p.says(t, "the relay has just started and has not heard from the database yet")
}

// The database answers, whatever Kafka does, which the relay waits for when it starts.
func TestTheDatabaseIsWellWhileKafkaIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.env["RELAY_KAFKA_BROKERS"] = newDoorman(t).Addr().String()
	p := newTestProcess(t, s.env)
	p.topicsWait = time.Hour
	p.running(t)
	p.says(t, "no event can be sent to Kafka")
	eventually(t, func() error {
		if _, body := ask(p, "/metrics"); !strings.Contains(body, "relay_database_up 1\n") {
			return errors.New("the metrics don't say that the database is up")
		}
		return nil
	})
}

// doorman counts the connections that come to a server.
type doorman struct {
	net.Listener
	came atomic.Int64
}

func newDoorman(t *testing.T) *doorman {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return &doorman{Listener: listener}
}

// Accept implements [net.Listener].
func (d *doorman) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err == nil {
		d.came.Add(1)
	}
	return conn, err
}

// Whatever is asked over HTTP is answered from memory. The process does nothing by itself
// here, so a connection to the database could only come from a request.
func TestRequestsOpenNoConnections(t *testing.T) {
	t.Parallel()
	database, brokers := newDoorman(t), newDoorman(t)
	go func() {
		for {
			conn, err := database.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	topic := kafkatest.Name("events")
	broker := kafkatest.Fake(t, kfake.SeedTopics(1, topic), kfake.ListenFn(func(string, string) (net.Listener, error) { return brokers, nil }))
	p := newTestProcess(t, variables("postgres://relay@"+database.Addr().String()+"/app?sslmode=disable", broker.Addrs, topic))
	if err := p.sink.AwaitReady(t.Context(), p.scopes[0]); err != nil {
		t.Fatal(err)
	}
	p.measureHealth()
	before := brokers.came.Load()
	for range 100 {
		for _, path := range []string{
			"/livez", "/readyz", "/metrics", "/status", "/", "/page.css", "/page.js", "/icon.svg", "/page.json?find=a",
		} {
			if status, body := ask(p, path); status != http.StatusOK {
				t.Fatalf("%s: %d, %s", path, status, body)
			}
		}
	}
	if n := database.came.Load(); n != 0 {
		t.Errorf("%d connections to the database", n)
	}
	if n := brokers.came.Load() - before; n != 0 || before == 0 {
		t.Errorf("%d connections to the broker after %d", n, before)
	}
}

// newTestProcess makes a process that doesn't run.
func newTestProcess(t *testing.T, env map[string]string) *process {
	t.Helper()
	a := &app{environ: environ(env), hostname: "host", stdout: io.Discard, stderr: io.Discard}
	s, err := a.settings()
	if err != nil {
		t.Fatal(err)
	}
	db, err := openStore(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	sink, err := kafkasink.New(sinkConfig(s, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	p, err := newProcess(s, zerolog.Nop(), newDiary(zerolog.Nop()), db, sink, monitor.NewMetrics("test", "go", len(s.Scopes)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
