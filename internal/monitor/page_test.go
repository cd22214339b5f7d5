package monitor_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/browsertest"
	"outboxrelay/internal/childproc"
	"outboxrelay/internal/monitor"
)

const (
	desktop = 1280
	phone   = 360
)

// look opens the page of a board.
func look(t *testing.T, b *monitor.Board, width int64) *browsertest.Tab {
	t.Helper()
	server := httptest.NewServer(serving(b))
	t.Cleanup(server.Close)
	tab := browsertest.Open(t, width, 800)
	tab.Go(server.URL)
	tab.Until("state", `document.getElementById("state").textContent != "Loading"`)
	return tab
}

func text(tab *browsertest.Tab, selector string) string {
	return browsertest.Eval[string](tab, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// fits fails if the page is wider than its window.
func fits(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	if wide := browsertest.Eval[[]string](tab, `[document.documentElement, ...document.querySelectorAll("body *")]
		.filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 || e === document.documentElement && e.scrollWidth > innerWidth)
		.map((e) => e.tagName + " " + e.id + " " + e.textContent.slice(0, 80))`); len(wide) > 0 {
		t.Errorf("wider than the window: %q", wide)
	}
}

func TestPageMoves(t *testing.T) {
	t.Parallel()
	b := monitor.NewBoard(monitor.About{Namespace: "orders", Version: "v1.2.3", CountCap: 10_000, Details: true})
	acme := tenant(t, "acme")
	b.Scopes([]envelope.Scope{acme})
	tab := look(t, b, desktop)
	if got := text(tab, "#scopes-note") + ", " + text(tab, "#waiting strong"); got != "not counted yet, –" {
		t.Errorf("before the first count: %s", got)
	}
	settle(b, 1234, 250*time.Millisecond)
	b.Counted(acme, monitor.Counts{Due: 10_000, Delayed: 1, Parked: 1, OldestDue: 200}, nil)
	id := "acme"
	b.Round([]monitor.Parked{{Tenant: &id, ID: 77, Operation: "6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d", Attempts: 2, Reason: "too large"}})
	b.Healthy(monitor.Health{Broker: errors.New("no broker answers")})
	tab.Until("delivered events", `document.querySelector("#delivered .note").textContent == "1,234 events since the start"`)
	for selector, want := range map[string]string{
		"h1": "relay orders", "#state": "Not ready", "#broker": "Kafka has taken no events for", "#broker .error": "no broker answers",
		"#database": "PostgreSQL has answered for", "#live": "Relay works, started",
		"#lag strong": "230 ms" /* lags are counted by size */, "#waiting strong": "10,001+", "#waiting .note": "oldest due for 3 min 20 s",
		"#scopes tbody": "acme 3 min 20 s 10,000+ 0 1 1", "#parked tbody": "acme 77 6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d too large 2 –",
	} {
		if got := strings.Join(strings.Fields(text(tab, selector)), " "); !strings.HasPrefix(got, want) && !strings.HasSuffix(got, want) {
			t.Errorf("%s shows %q, want %q", selector, got, want)
		}
	}
	b.Healthy(monitor.Health{})
	b.Counted(acme, monitor.Counts{}, nil)
	b.Round(nil)
	tab.Until("better times", `document.getElementById("state").textContent == "Ready" && document.querySelector("#waiting strong").textContent == "0"
		&& document.querySelector("#parked").hidden && document.title == "relay orders"`)
	tab.Until("a point of the chart", `document.querySelector("#delivered path.line").getAttribute("d") != ""`)
	tab.Until("a figure at the pointer", `(() => {
		const svg = document.querySelector("#delivered svg"), box = svg.getBoundingClientRect();
		svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right, clientY: box.top }));
		return document.querySelector("#delivered .axis").innerText.match(/^5 s ago: [0-9.]+\/s\s+now$/);
	})()`)
	if got := browsertest.Eval[string](tab, `getComputedStyle(document.body).backgroundColor`); got != "rgb(255, 255, 255)" {
		t.Errorf("the page is %s by light", got)
	}
	tab.Dark()
	if got := browsertest.Eval[string](tab, `getComputedStyle(document.body).backgroundColor`); got != "rgb(20, 23, 26)" {
		t.Errorf("the page is %s in the dark", got)
	}
}

// Where no error texts are shown the page says who tells them.
func TestPageWithoutDetailsSaysWhereTheReasonIs(t *testing.T) {
	t.Parallel()
	b := monitor.NewBoard(monitor.About{Namespace: "orders"})
	b.Healthy(monitor.Health{Broker: errors.New("no broker answers")})
	tab := look(t, b, desktop)
	if got := text(tab, "#broker"); !strings.HasSuffix(got, ` s; "relay check" says why`) || strings.Contains(got, "no broker answers") {
		t.Errorf("of Kafka the page says %q", got)
	}
	if got := text(tab, "#database"); strings.Contains(got, "relay check") {
		t.Errorf("of the database the page says %q", got)
	}
}

// The page says that it is not up to date, and goes on by itself.
func TestPageOfARelayThatIsGone(t *testing.T) {
	t.Parallel()
	ports, err := childproc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	handler := serving(monitor.NewBoard(monitor.About{}))
	server := serveAt(t, childproc.Loopback(ports[0]), handler)
	tab := browsertest.Open(t, desktop, 800)
	tab.Go(server.URL)
	tab.Until("state", `document.getElementById("state").textContent == "Ready"`)
	server.Close()
	tab.Until("the loss", `document.getElementById("state").textContent == "No answer from the relay" && document.body.className == "stale"`)
	serveAt(t, childproc.Loopback(ports[0]), handler)
	tab.Until("state", `document.getElementById("state").textContent == "Ready" && document.body.className == ""`)
	for _, complaint := range tab.Complaints() {
		if !strings.Contains(complaint, "net::ERR_") {
			t.Error(complaint)
		}
	}
}

func serveAt(t *testing.T, address string, handler http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestPageWithoutDetails(t *testing.T) {
	t.Parallel()
	tab := look(t, troubled(t, false), phone)
	fits(t, tab)
	shown := text(tab, "body")
	if strings.Contains(shown, "secret") || !strings.Contains(shown, "RELAY_HTTP_DETAILS=true") || !strings.Contains(shown, "2 have events waiting") {
		t.Errorf("the page shows\n%s", shown)
	}
	if browsertest.Eval[bool](tab, `!document.getElementById("query").hidden || document.querySelectorAll("tbody tr").length > 0`) {
		t.Error("there is a table, or a search for tenants")
	}
}

// Five thousand scopes are found by name and seen by the page, and the page stays quick.
func TestPageOfManyScopes(t *testing.T) {
	t.Parallel()
	b := monitor.NewBoard(monitor.About{CountCap: 10_000, Details: true})
	scopes := tenants(t, 5000)
	b.Scopes(scopes)
	for i, scope := range scopes {
		b.Counted(scope, monitor.Counts{Due: i, OldestDue: float64(i)}, nil)
	}
	b.Round(nil)
	tab := look(t, b, desktop)
	rows := `document.querySelector("#scopes tbody").rows`
	first := rows + `[0].cells[0].innerText`
	if got := browsertest.Eval[string](tab, first+` + " " + `+rows+`.length`); got != "tenant-04999 15" {
		t.Errorf("the worst and how many: %s", got)
	}
	for _, n := range []int{60, 240, 960, 1000} {
		tab.Click("#more")
		tab.Until("more scopes", fmt.Sprintf("%s.length == %d", rows, n))
	}
	if browsertest.Eval[bool](tab, `!document.getElementById("more").hidden`) {
		t.Error("there is a button for more than is given")
	}
	// The longest that the page kept the browser busy without a pause. Below 50 ms the browser
	// reports nothing.
	busy := browsertest.Eval[float64](tab, `new Promise((done) => {
		new PerformanceObserver((list) => done(Math.max(...list.getEntries().map((e) => e.duration)))).observe({ type: "longtask", buffered: true });
		setTimeout(done, 1000, 0);
	})`)
	if busy > 3000 {
		t.Errorf("the page was busy for %.0f ms", busy)
	}
	tab.Type("#find", "TENANT-00123")
	tab.Until("the one that is looked for", rows+`.length == 1 && `+first+` == "tenant-00123"`)
	tab.Type("#find", "x") // behind what is there
	tab.Until("that there is none", `!document.getElementById("scopes-none").hidden && document.getElementById("scopes").hidden`)
}

// hostile are names that a tenant may have.
var hostile = []string{
	`<img src=x onerror="document.title='broken'">`,
	"</td></tr></table><script>document.title='broken'</script>",
	"\u202eevil\u202c \u2066left\u2069",
	"שלום",
	"zero\u200bwidth\u2028line\u00a0blank\U000e0041tag",
	strings.Repeat("x", envelope.MaxTenantBytes),
	strings.Repeat("﷽", envelope.MaxTenantBytes/3),
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{desktop, phone} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			b := monitor.NewBoard(monitor.About{Namespace: hostile[0], Worker: hostile[2], CountCap: 10_000, Details: true})
			var scopes []envelope.Scope
			var parked []monitor.Parked
			for i, name := range hostile {
				scopes = append(scopes, tenant(t, name))
				reason := "\x1b[2J\x1b]0;broken\x07" + name
				parked = append(parked, monitor.Parked{Tenant: &hostile[i], ID: 1<<63 - 1, Operation: "6f1c0d3e-8a55-4d0f-9a67-0d5b6f1a2c3d", Attempts: 1 << 31, Reason: reason})
			}
			b.Scopes(scopes)
			for i, scope := range scopes {
				b.Counted(scope, monitor.Counts{Due: 10_000, InFlight: 10_000, Delayed: 10_000, Parked: 10_000, OldestDue: 1e6 - float64(i)}, errors.New(hostile[i]))
			}
			b.Healthy(monitor.Health{Live: errors.New(hostile[0]), Database: errors.New(hostile[5]), Broker: errors.New("\x1b[31m" + hostile[1])})
			b.Round(parked)
			tab := look(t, b, width)
			tab.Until("all rows", fmt.Sprintf(`document.querySelectorAll("tbody tr").length == %d`, 2*len(hostile)))
			fits(t, tab)
			if n := browsertest.Eval[int](tab, `document.querySelectorAll("img, td script, th script, [onerror]").length`); n != 0 {
				t.Errorf("%d elements came out of texts", n)
			}
			names := browsertest.Eval[[]string](tab, `[...document.querySelectorAll("#scopes tbody th bdi:first-child")].map((e) => e.textContent)`)
			for i, want := range []string{
				hostile[0], hostile[1], `\u202eevil\u202c \u2066left\u2069`, hostile[3], `zero\u200bwidth\u2028line\u00a0blank\u{e0041}tag`, hostile[5], hostile[6],
			} {
				if names[i] != want {
					t.Errorf("name %q is shown as %q", hostile[i], names[i])
				}
			}
			shown := browsertest.Eval[string](tab, `document.body.textContent + document.title`)
			if strings.ContainsAny(shown, "\x1b\x07\u202e\u2066\u200b\u2028") || !strings.Contains(shown, `\u001b[2J\u001b]0;broken\u0007<img src=x`) {
				t.Errorf("the page holds %q", shown)
			}
		})
	}
}
