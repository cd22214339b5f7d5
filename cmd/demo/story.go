package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// tell plays the acts one after the other.
func (d *demo) tell(ctx context.Context) error {
	for _, act := range []func(context.Context) error{d.write, d.deliver, d.live, d.refuse, d.crash, d.check} {
		if err := act(ctx); err != nil {
			return interrupted(ctx, err)
		}
	}
	return nil
}

// write is the application's part, before any relay runs.
func (d *demo) write(ctx context.Context) error {
	d.screen.act("1. An application writes",
		"Each change of an operation commits together with its row in the outbox. No relay runs yet: the rows wait.")
	for _, tenant := range append(relayed(), notRelayed) {
		first, err := d.application.admit(ctx, tenant)
		if err != nil {
			return err
		}
		if tenant == notRelayed {
			continue
		}
		if _, err := d.application.advance(ctx, first, "claimed", "running"); err != nil {
			return err
		}
		if _, err := d.application.admit(ctx, tenant); err != nil {
			return err
		}
	}
	return d.journal.await(ctx, "written", isWritten, d.application.written()...)
}

// deliver starts the relay on what waits.
func (d *demo) deliver(ctx context.Context) error {
	d.screen.act("2. The relay starts",
		"It is told everything by its environment, and it is not told of tenant "+notRelayed+":\n\n"+
			strings.Join(d.program.environment, "\n"))
	if err := d.startRelay(ctx); err != nil {
		return err
	}
	if err := d.journal.await(ctx, "exported", isExported, d.relayedEvents()...); err != nil {
		return err
	}
	d.showRecord(d.journal.firstDelivery(d.operation("oak", 0).last()))
	return nil
}

// showRecord shows what a consumer gets.
func (d *demo) showRecord(record *delivery) {
	lines := []string{"", "One of these records in full, a CloudEvent in binary mode:", "", "key              " + string(record.record.Key)}
	for _, h := range record.record.Headers {
		lines = append(lines, fmt.Sprintf("%-16s %s", h.Key, h.Value))
	}
	d.screen.note("%s", strings.Join(append(lines, "value            "+string(record.record.Value)), "\n"))
}

// relayedEvents is everything written for the tenants that the relay is told of.
func (d *demo) relayedEvents() (events []transition) {
	for _, t := range d.application.written() {
		if t.tenant != notRelayed {
			events = append(events, t)
		}
	}
	return events
}

// live writes while the relay runs.
func (d *demo) live(ctx context.Context) error {
	d.screen.act("3. Live", "With the relay running, an event arrives a moment after it was written. It asks at least every 250 ms.")
	for _, tenant := range relayed() {
		t, err := d.application.advance(ctx, d.operation(tenant, 0), "succeeded", "succeeded")
		if err != nil {
			return err
		}
		if err := d.journal.await(ctx, "exported", isExported, t); err != nil {
			return err
		}
	}
	return nil
}

// operation is a tenant's nth one.
func (d *demo) operation(tenant string, n int) *operation {
	for _, o := range d.application.operations {
		if o.tenant != tenant {
			continue
		}
		if n == 0 {
			return o
		}
		n--
	}
	panic(fmt.Sprintf("the story has no operation %d for tenant %s", n, tenant))
}

// refuse has a broker refuse one send.
func (d *demo) refuse(ctx context.Context) error {
	d.screen.act("4. Kafka refuses an event",
		"The next send is answered with an error, as if the right to write were missing for a moment.\n"+
			"The row keeps the reason and is tried again; the operation's next event waits behind it, so order is kept.")
	operation := d.operation("oak", 1)
	d.kafka.refuseNextSend()
	first, err := d.application.advance(ctx, operation, "claimed", "running")
	if err != nil {
		return err
	}
	if err := d.journal.await(ctx, "refused", isRefused, first); err != nil {
		return err
	}
	second, err := d.application.advance(ctx, operation, "succeeded", "succeeded")
	if err != nil {
		return err
	}
	return d.journal.await(ctx, "exported", isExported, first, second)
}

// crash kills the relay after Kafka has an event and before the relay knows.
func (d *demo) crash(ctx context.Context) error {
	if d.options.once {
		return d.crashAtCommit(ctx)
	}
	d.screen.act("5. The relay is killed at the worst moment",
		"Kafka has just received an event, and the relay dies (kill -9) before it hears so and can mark the row.")
	operation := d.operation("fir", 1)
	event := operation.next()
	d.kafka.atNextSend(func() {
		d.relay.kill()
		d.screen.happened(killed, "", "the relay, while a broker writes %s", event)
	})
	if _, err := d.application.advance(ctx, operation, "claimed", "running"); err != nil {
		return err
	}
	if err := d.journal.await(ctx, "delivered", isDelivered, event); err != nil {
		return err
	}
	d.screen.note("\nThe event is in the topic, but its row is still claimed by the dead relay, for %s. A new relay starts.\n"+
		"Everybody else's events go on; the operation's next event waits until the claim has ended.\n", lease)
	if err := d.startRelay(ctx); err != nil {
		return err
	}
	second, err := d.application.advance(ctx, operation, "succeeded", "succeeded")
	if err != nil {
		return err
	}
	for _, tenant := range []string{"oak", "elm"} {
		if _, err := d.application.admit(ctx, tenant); err != nil {
			return err
		}
	}
	d.repeated = event
	defer d.countDown(ctx, d.journal.claimedUntil(event))()
	if err := d.journal.await(ctx, "exported", isExported, event, second); err != nil {
		return err
	}
	d.screen.note("\nAt least once: the event came twice. Both records have the same key, headers and value, so a consumer\n"+
		"that remembers ce_source and ce_id (here ...:%d) takes it once.", event.version)
	return d.journal.await(ctx, "exported", isExported, d.relayedEvents()...)
}

// crashAtCommit kills the relay when Kafka commits an event and before the relay knows.
func (d *demo) crashAtCommit(ctx context.Context) error {
	d.screen.act("5. The relay is killed at the worst moment",
		"Kafka has been told to commit an event, and the relay dies (kill -9) before it hears so and can mark the row.")
	operation := d.operation("fir", 1)
	event := operation.next()
	d.kafka.atNextCommit(func() {
		d.relay.kill()
		d.screen.happened(killed, "", "the relay, while a broker commits %s", event)
	})
	if _, err := d.application.advance(ctx, operation, "claimed", "running"); err != nil {
		return err
	}
	if err := d.journal.await(ctx, "delivered", isDelivered, event); err != nil {
		return err
	}
	d.screen.note("\nThe event is in the topic, but its row is still claimed by the dead relay. A new relay starts. It fences\n" +
		"the dead one, reads in the ledger that this claim was committed, and marks the row without sending anything.\n")
	if err := d.startRelay(ctx); err != nil {
		return err
	}
	if err := d.journal.await(ctx, "exported", isExported, event); err != nil {
		return err
	}
	second, err := d.application.advance(ctx, operation, "succeeded", "succeeded")
	if err != nil {
		return err
	}
	d.screen.note("\nExactly once: a consumer that reads committed records sees the event once.")
	if err := d.journal.await(ctx, "delivered", isDelivered, second); err != nil {
		return err
	}
	return d.journal.await(ctx, "exported", isExported, d.relayedEvents()...)
}

// countDown tells now and then how long a claim still holds, until it ends or stop is called.
func (d *demo) countDown(ctx context.Context, until time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for time.Until(until) > time.Second {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				d.screen.note("... the dead relay's claim ends in %s", since(time.Until(until)))
			}
		}
	})
	return func() { cancel(); ended.Wait() }
}
