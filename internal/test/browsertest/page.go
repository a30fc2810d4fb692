package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const (
	timeout  = 2 * time.Minute       // timeout of a condition
	interval = 20 * time.Millisecond // between two checks of the page
)

// Page is a tab with its own cookies. Its methods fail the test on errors.
type Page struct {
	t    testing.TB
	base string
	ctx  context.Context

	// Keystrokes counts the keys that were pressed, without those of [Page.Write].
	Keystrokes int

	mu     sync.Mutex
	broken []string
}

// Open opens a tab on the server at base until the test ends. The test fails if the browser reports a script error or a violation of the
// page's policy.
func Open(t testing.TB, base string) *Page {
	t.Helper()
	all := shared.join(t)
	executor := cdp.WithExecutor(all, chromedp.FromContext(all).Browser)
	profile, err := target.CreateBrowserContext().Do(executor)
	require.NoError(t, err)
	tab, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(executor)
	require.NoError(t, err)
	ctx, cancel := chromedp.NewContext(all, chromedp.WithTargetID(tab))
	p := &Page{t: t, base: strings.TrimSuffix(base, "/"), ctx: ctx}
	t.Cleanup(func() {
		cancel()
		_ = target.DisposeBrowserContext(profile).Do(executor) // the browser may have ended before
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.broken) > 0 {
			t.Errorf("errors in the browser: %s", strings.Join(p.broken, "\n"))
		}
	})
	chromedp.ListenTarget(ctx, p.hear)
	require.NoError(t, chromedp.Run(ctx, network.Enable(), log.Enable(), page.Enable())) // without a timeout, whose end would close the tab
	return p
}

// hear records errors in the browser. It ignores HTTP statuses, which tests cause on purpose, and remarks, such as that a field got no
// focus because another one had it.
func (p *Page) hear(event any) {
	var text string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Source == log.SourceNetwork || e.Entry.Level == log.LevelInfo || e.Entry.Level == log.LevelVerbose {
			return
		}
		text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.APITypeError && e.Type != runtime.APITypeWarning {
			return
		}
		for _, arg := range e.Args {
			text += string(arg.Value) + arg.Description + " "
		}
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = append(p.broken, text)
}

// Forgive removes the recorded errors and returns them.
func (p *Page) Forgive() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := p.broken
	p.broken = nil
	return heard
}

func (p *Page) run(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	require.NoError(p.t, chromedp.Run(ctx, actions...))
}

// Go loads a path and waits for it.
func (p *Page) Go(path string) {
	p.t.Helper()
	p.run(chromedp.Navigate(p.base + path))
}

// Look sets the window's size and theme.
func (p *Page) Look(width, height int64, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.run(emulation.SetDeviceMetricsOverride(width, height, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// Speak sets the languages of the browser's user, the preferred one first: gu,en.
func (p *Page) Speak(languages string) {
	p.t.Helper()
	p.run(emulation.SetUserAgentOverride("Mozilla/5.0 (X11; Linux x86_64) bahi").WithAcceptLanguage(languages))
}

// Click clicks the first match of the CSS selector. If an update of the page removes the element before the click, Click searches again.
func (p *Page) Click(selector string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	for {
		err := chromedp.Run(ctx, chromedp.Click(selector, chromedp.ByQuery))
		if gone, ok := errors.AsType[*cdproto.Error](err); ok && strings.Contains(gone.Message, "find node") {
			continue
		}
		require.NoError(p.t, err)
		return
	}
}

// Submit clicks and waits for the next page.
func (p *Page) Submit(selector string) {
	p.t.Helper()
	p.leaving(func() { p.Click(selector) })
}

// leaving waits until do has led to another page.
func (p *Page) leaving(do func()) {
	p.t.Helper()
	p.run(chromedp.Evaluate(`window.old = true`, nil))
	do()
	p.Until(`!window.old && document.readyState === "complete"`)
}

// Type replaces the text of the field.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.run(chromedp.Evaluate(`document.querySelector(`+quote(selector)+`).value = ""`, nil),
		chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// Choose selects files or a folder in the field, and waits for the page's event: the browser reads a folder asynchronously.
func (p *Page) Choose(selector string, paths ...string) {
	p.t.Helper()
	p.run(chromedp.Evaluate(`window.heard = new Promise(hear => {
		for (const kind of ["change", "cancel"]) document.querySelector(`+quote(selector)+
		`).addEventListener(kind, () => hear(), {once: true}) // cancel: it has them already
	}), 0`, nil), chromedp.SetUploadFiles(selector, paths, chromedp.ByQuery))
	p.Evaluate(`window.heard.then(() => 0)`, new(int))
}

// Keys presses keys at the focus, one after the other.
func (p *Page) Keys(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.Keystrokes++
		p.run(chromedp.KeyEvent(key))
	}
}

// Write types a text at the focus.
func (p *Page) Write(text string) {
	p.t.Helper()
	p.run(chromedp.KeyEvent(text))
}

// TabTo presses Tab until the selector matches the focused element.
func (p *Page) TabTo(selector string) {
	p.t.Helper()
	for range 80 {
		p.Keys(kb.Tab)
		if p.Is(`document.activeElement.matches(` + quote(selector) + `)`) {
			return
		}
	}
	require.Fail(p.t, "not reachable by keyboard", "%s was not reached with 80 presses of Tab", selector)
}

// Enter presses Enter and waits for the next page.
func (p *Page) Enter() {
	p.t.Helper()
	p.leaving(func() { p.Keys(kb.Enter) })
}

// Is returns the value of a JavaScript condition.
func (p *Page) Is(condition string) (is bool) {
	p.t.Helper()
	p.read(`Boolean(`+condition+`)`, &is)
	return is
}

// Until waits until a JavaScript condition holds, in the current page.
func (p *Page) Until(condition string) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(interval) {
		ctx, cancel := context.WithTimeout(p.ctx, timeout)
		var is bool
		err := chromedp.Run(ctx, chromedp.Evaluate(`Boolean(`+condition+`)`, &is)) // fails while a page is replaced or loads
		cancel()
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) {
			require.Fail(p.t, "condition never held", "%s; text of the page: %s", condition, p.Text("main"))
		}
	}
}

// read evaluates an expression without side effects. It retries if the browser refuses because the page is being replaced.
func (p *Page) read(expression string, into any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.Evaluate(expression, into))
	for refused := (*cdproto.Error)(nil); errors.As(err, &refused); err = chromedp.Run(ctx, chromedp.Evaluate(expression, into)) {
		time.Sleep(interval)
	}
	require.NoError(p.t, err)
}

// Text returns the visible text of the first match, "" without a match.
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.read(`(document.querySelector(`+quote(selector)+`) || {innerText: ""}).innerText`, &text)
	return strings.TrimSpace(text)
}

// Texts returns the visible texts of all matches.
func (p *Page) Texts(selector string) (texts []string) {
	p.t.Helper()
	p.read(`[...document.querySelectorAll(`+quote(selector)+`)].map(e => e.innerText.trim())`, &texts)
	return texts
}

// Evaluate runs a script, awaits its promise, and decodes the result.
func (p *Page) Evaluate(script string, into any) {
	p.t.Helper()
	p.run(chromedp.Evaluate(script, into, awaited))
}

func awaited(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// URL returns the page's address without the server.
func (p *Page) URL() (path string) {
	p.t.Helper()
	p.read(`location.pathname + location.search`, &path)
	return path
}

// Picture writes a picture of the whole page to a PNG file.
func (p *Page) Picture(file string) {
	p.t.Helper()
	var png []byte
	p.run(chromedp.FullScreenshot(&png, 100))
	require.NoError(p.t, os.WriteFile(file, png, 0o600))
}

func quote(text string) string { return fmt.Sprintf("%q", text) }
