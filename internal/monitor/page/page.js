// Everything that is shown is set as text, never as markup.

const every = 2000; // ms between two looks
const $ = (id) => document.getElementById(id);
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

// printable shows what can't be seen, or would change how the rest is shown, as an escape.
const printable = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu,
	(c) => "\\u" + (c.length > 1 ? "{" + c.codePointAt(0).toString(16) + "}" : c.charCodeAt(0).toString(16).padStart(4, "0")));

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const number = (n) => n < 10 ? rough.format(n) : whole.format(n);
const capped = (n, cap) => n >= cap ? whole.format(cap) + "+" : whole.format(n);
const plural = (n, one, many) => whole.format(n) + " " + (n === 1 ? one : many);
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

// duration is a number of seconds in its two largest units.
function duration(s) {
	if (s < 0.9995) return rough.format(s * 1000) + " ms";
	if (s < 59.5) return (s < 9.95 ? rough : whole).format(s) + " s";
	const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
	const at = units.findIndex(([, size]) => Math.round(s) >= size);
	const [[large, size], [small, less]] = [units[at], units[at + 1]];
	const rest = Math.floor(Math.round(s) % size / less);
	return whole.format(Math.floor(Math.round(s) / size)) + " " + large + (rest ? " " + rest + " " + small : "");
}

const age = (s) => duration(Math.max(1, Math.round(s))); // of what is looked at now and then

// Charts

const height = 80;

// top is the round number that a chart ends at.
function top(max) {
	const power = 10 ** Math.floor(Math.log10(max));
	return ([1, 2, 5].find((n) => n * power >= max) || 10) * power;
}

// topDuration is the same for a lag, round in its own unit.
function topDuration(max) {
	if (max <= 60) return top(max);
	return [120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].find((n) => n >= max) || top(max / 86400) * 86400;
}

// outline is the path of values, with a gap where there is none.
function outline(values, first, steps, max, area) {
	let path = "", from = null;
	const x = (i) => ((first + i) / (steps - 1) * 360).toFixed(1);
	const close = (i) => { if (area && from !== null) path += `L${x(i)} ${height}L${x(from)} ${height}Z`; from = null; };
	values.forEach((v, i) => {
		if (v === null) return close(i - 1);
		path += (from === null ? "M" : "L") + x(i) + " " + (height - v / max * height).toFixed(1);
		if (from === null) from = i;
		if (i + 1 === values.length || values[i + 1] === null) path += "h0.1"; // so that a single point is seen
	});
	close(values.length - 1);
	return path;
}

// Chart draws lists of values over time into a figure, the first with the area below it.
class Chart {
	constructor(id, round, label) {
		this.figure = $(id);
		this.svg = this.figure.querySelector("svg");
		[this.round, this.label, this.at] = [round, label, null];
		this.svg.addEventListener("pointermove", (e) => this.point(e));
		this.svg.addEventListener("pointerdown", (e) => this.point(e));
		this.svg.addEventListener("pointerleave", () => { this.at = null; this.draw(); });
	}

	show(value, note, step, steps, lists) {
		put(this.figure.querySelector("strong"), value);
		put(this.figure.querySelector(".note"), note);
		this.svg.setAttribute("aria-label", `${value}, ${note}`);
		[this.step, this.steps, this.lists] = [step, steps, lists];
		this.draw();
	}

	point(event) {
		const box = this.svg.getBoundingClientRect();
		this.at = Math.round((event.clientX - box.left) / box.width * (this.steps - 1));
		this.draw();
	}

	draw() {
		if (!this.lists) return;
		const first = this.steps - this.lists[0].length;
		const most = Math.max(0, ...this.lists.flat().filter((v) => v !== null));
		const max = most > 0 ? this.round(most) : 1;
		const path = (name, list, area) => this.part("path", name, { d: outline(list, first, this.steps, max, area) });
		path("area", this.lists[0], true);
		if (this.lists[1]) path("slow", this.lists[1], false);
		path("line", this.lists[0], false);
		const i = this.at === null ? -1 : this.at - first;
		const values = this.lists.map((list) => list[i] ?? null);
		const x = values[0] === null ? -10 : this.at / (this.steps - 1) * 360;
		this.part("line", "cursor", { x1: x, x2: x, y1: 0, y2: values[0] === null ? 0 : height });
		put(this.figure.querySelector(".top"), most > 0 ? this.label([max]) : "");
		const [left] = this.figure.querySelectorAll(".axis span");
		put(left, values[0] === null ? duration(this.steps * this.step) + " ago"
			: duration((this.steps - this.at) * this.step) + " ago: " + this.label(values));
	}

	part(kind, name, attributes) {
		let part = this.svg.getElementsByClassName(name)[0];
		if (!part) {
			part = document.createElementNS("http://www.w3.org/2000/svg", kind);
			part.setAttribute("class", name);
			this.svg.append(part);
		}
		for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
	}
}

const charts = {
	delivered: new Chart("delivered", top, ([n]) => number(n) + "/s"),
	lag: new Chart("lag", topDuration, ([median, slow]) => duration(median) + (slow === undefined ? "" : ", 99% " + duration(slow))),
	waiting: new Chart("waiting", top, ([n]) => number(n)),
};

function showPace(p) {
	const { pace, totals } = p;
	const draw = (chart, value, note, ...lists) => chart.show(value, note, pace.step_seconds, pace.steps, lists);
	draw(charts.delivered, number(pace.per_second) + "/s", plural(pace.delivered, "event", "events") + " since the start",
		pace.delivered_steps.map((n) => n / pace.step_seconds));
	draw(charts.lag, pace.lag_median === null ? "–" : duration(pace.lag_median),
		pace.lag_median === null ? "nothing was delivered in the last minute" : "median of the last minute; 99% within " + duration(pace.lag_99),
		pace.lag_median_steps, pace.lag_99_steps);
	const waiting = totals.due + totals.in_flight + totals.delayed;
	draw(charts.waiting, p.counted_seconds_ago === null ? "–" : whole.format(waiting) + (p.capped.waiting ? "+" : ""),
		p.counted_seconds_ago === null ? "not counted yet" : [
			whole.format(totals.due) + " due", whole.format(totals.in_flight) + " in flight", whole.format(totals.delayed) + " delayed",
		].join(", ") + (totals.due ? "; oldest due for " + duration(totals.oldest_due_seconds) : ""),
		pace.waiting_steps);
}

// Conditions

function showCondition(id, condition, good, bad) {
	const [says, error] = $(id).querySelectorAll("dd");
	put(says, condition.ok ? good : bad);
	put(error, printable(condition.error || ""));
	error.hidden = !condition.error;
	$(id).classList.toggle("bad", !condition.ok);
}

function showConditions(p) {
	const since = (c) => " for " + age(c.seconds) + (c.ok || p.details ? "" : `; "relay check" says why`);
	showCondition("live", p.live, "works, started " + age(p.uptime_seconds) + " ago", "a worker is stuck");
	showCondition("database", p.database, "has answered" + since(p.database), "has not done what is needed" + since(p.database));
	showCondition("broker", p.broker, "has taken events" + since(p.broker), "has taken no events" + since(p.broker));
	const ready = p.database.ok && p.broker.ok;
	say(!p.live.ok ? "Stuck" : ready ? "Ready" : "Not ready", ready && p.live.ok);
	document.title = (ready && p.live.ok ? "" : "! ") + "relay " + printable(p.namespace);
}

function say(text, good) {
	put($("state"), text);
	$("state").className = good ? "good" : "bad";
}

// Tables

// fill makes a table's rows those of a list, and changes only what differs.
function fill(table, row, list, set) {
	const body = $(table).tBodies[0];
	while (body.rows.length > list.length) body.deleteRow(-1);
	while (body.rows.length < list.length) body.append($(row).content.cloneNode(true));
	list.forEach((item, i) => set(body.rows[i].cells, item));
	$(table).hidden = list.length === 0;
}

function name(element, tenant) {
	put(element, tenant === null ? "non-tenant scope" : printable(tenant));
	element.classList.toggle("other", tenant === null);
}

function showScopes(p) {
	const { scopes } = p, counted = p.counted_seconds_ago;
	put($("scopes-count"), whole.format(scopes.configured));
	put($("scopes-note"), counted === null ? "not counted yet"
		: (scopes.waiting ? whole.format(scopes.waiting) + (scopes.waiting === 1 ? " has" : " have") + " events waiting" : "nothing waits")
			+ "; counted " + age(counted) + " ago");
	$("query").hidden = !p.details;
	$("scopes-none").hidden = !p.details || scopes.found > 0;
	const list = scopes.list || [];
	fill("scopes", "scope-row", list, ([head, ...cells], s) => {
		const [who, trouble] = head.children;
		name(who, s.tenant);
		put(trouble, printable(s.trouble || ""));
		trouble.hidden = !s.trouble;
		put(cells[0], s.due ? duration(s.oldest_due_seconds) : "–");
		cells[0].classList.toggle("zero", !s.due);
		["due", "in_flight", "delayed", "parked"].forEach((key, i) => {
			put(cells[i + 1], capped(s[key], p.count_cap));
			cells[i + 1].classList.toggle("zero", !s[key]);
		});
		cells[4].classList.toggle("bad", s.parked > 0);
	});
	$("more").hidden = list.length >= Math.min(scopes.found, most);
	put($("more"), `Show more: these are ${whole.format(list.length)} of ${whole.format(scopes.found)}`);
}

function showParked(p) {
	const list = p.parked || [], all = p.totals.parked;
	put($("parked-count"), p.counted_seconds_ago === null ? "" : whole.format(all) + (p.capped.parked ? "+" : ""));
	put($("parked-note"), !all ? "" : p.details
		? (list.length < all ? `the first of them; "relay parked list" shows all` : `"relay parked" sends them again or gives them up`)
		: `"relay parked list" shows them`);
	fill("parked", "parked-row", list, ([head, row, reason, attempts, created], e) => {
		name(head.firstElementChild, e.tenant);
		put(row.children[0], String(e.id));
		put(row.children[1], e.operation_id);
		put(reason.firstElementChild, printable(e.reason));
		put(attempts, whole.format(e.attempts));
		put(created, e.created_at === null ? "–" : moment.format(new Date(e.created_at)));
	});
}

// The loop

const most = 1000; // scopes that the relay gives at most
const few = 15;
let limit = few, timer, asked;

async function look() {
	clearTimeout(timer);
	asked?.abort();
	const mine = asked = new AbortController();
	const late = setTimeout(() => mine.abort(), 5 * every);
	try {
		const query = new URLSearchParams({ find: $("find").value, order: $("order").value, limit });
		const response = await fetch("page.json?" + query, { signal: mine.signal });
		if (!response.ok) throw new Error(response.statusText);
		const p = await response.json();
		if (mine !== asked) return;
		show(p);
	} catch {
		if (mine !== asked) return; // a newer look is under way
		say("No answer from the relay", false);
		document.title = "! relay";
		document.body.classList.add("stale");
	} finally {
		clearTimeout(late);
	}
	if (!document.hidden) timer = setTimeout(look, every);
}

function show(p) {
	document.body.classList.remove("stale");
	put($("namespace"), printable(p.namespace));
	showConditions(p);
	showPace(p);
	showScopes(p);
	showParked(p);
	put($("about"), [`relay ${p.version}`, printable(p.worker), p.delivery,
		p.details ? "" : "tenant names and error texts are shown with RELAY_HTTP_DETAILS=true"].filter(Boolean).join(" · "));
}

$("query").addEventListener("submit", (e) => e.preventDefault());
$("find").addEventListener("input", () => { limit = few; look(); });
$("order").addEventListener("change", look);
$("more").addEventListener("click", () => { limit = Math.min(limit * 4, most); look(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
look();
