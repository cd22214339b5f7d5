// Package browsertest drives a headless Chromium for tests of pages.
package browsertest

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what it wants to see.
const patience = time.Minute

// goodbye is how long a browser may take to end by itself.
const goodbye = 10 * time.Second

// Tab is a page in a browser of its own. The test fails if the browser complains of
// anything on its console, such as an exception or a file that the policy forbids.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// Open starts a browser with a window of that size in CSS pixels.
func Open(t testing.TB, width, height int64) *Tab {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true),
		chromedp.NoSandbox) // root has none, nor have others in many containers; it shows pages of the tests alone
	tab := &Tab{t: t}
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocated, chromedp.WithListener(tab.listen))
	tab.ctx = ctx
	t.Cleanup(func() {
		orderly, cancel := context.WithTimeout(ctx, goodbye)
		defer cancel()
		_ = chromedp.Cancel(orderly) // so that the browser takes its files away; else it is killed
		closeTab()
		end()
		for _, complaint := range tab.Complaints() {
			t.Errorf("the browser complains: %s", complaint)
		}
	})
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the context of the first call
		t.Fatalf("start %s: %v", path, err)
	}
	run(tab, "set the size", chromedp.EmulateViewport(width, height))
	return tab
}

// program is where Chromium is.
func program() (string, error) {
	for _, name := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no Chromium (Debian: apt-get install chromium)")
}

func (tab *Tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text := string(e.Type)
		for _, arg := range e.Args {
			text += " " + string(arg.Value)
		}
		tab.complain(text)
	case *runtime.EventExceptionThrown:
		tab.complain(e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
	case *log.EventEntryAdded:
		tab.complain(fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

func (tab *Tab) complain(text string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.complaints = append(tab.complaints, text)
}

// Complaints takes what the browser has written to its console so far.
func (tab *Tab) Complaints() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	all := tab.complaints
	tab.complaints = nil
	return all
}

// Go opens an address.
func (tab *Tab) Go(url string) { tab.t.Helper(); run(tab, "open "+url, chromedp.Navigate(url)) }

// Dark tells pages that the reader wants dark ones.
func (tab *Tab) Dark() {
	tab.t.Helper()
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	run(tab, "turn dark", func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, emulation.SetEmulatedMedia, dark)
	})
}

// Eval gives the value of a JavaScript expression in the page.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return run(tab, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Until waits until a JavaScript expression is true. Else the test fails with what the
// page shows.
func (tab *Tab) Until(what, expression string) {
	tab.t.Helper()
	deadline := time.Now().Add(patience)
	for !Eval[bool](tab, "Boolean("+expression+")") {
		if time.Now().After(deadline) {
			tab.t.Fatalf("no %s after %s; the page shows\n%s", what, patience, Eval[string](tab, "document.body.innerText"))
		}
		Eval[bool](tab, "new Promise((done) => setTimeout(done, 20, true))")
	}
}

// Type writes into a field, as a person would.
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	run(tab, "type "+text, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Click clicks on an element.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	run(tab, "click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Picture is the whole page as a PNG.
func (tab *Tab) Picture() []byte {
	tab.t.Helper()
	return run(tab, "take a picture", chromedp.FullScreenshot(100))
}

func run[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.t.Fatalf("%s: %v", what, err)
	}
	return value
}
