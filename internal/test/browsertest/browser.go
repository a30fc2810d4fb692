// Package browsertest lets tests use pages in a real browser, a headless Chromium.
package browsertest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"bahi/internal/distro"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is the process's Chromium. Its start takes longer than most tests, so it runs from the first page until [End].
type browser struct {
	mu      sync.Mutex
	context context.Context // nil: it does not run
	stop    func()
	camera  string // the file with the picture that its camera takes
}

var shared browser

const (
	startsTimeout   = time.Minute
	installsTimeout = 5 * time.Minute
)

// join returns the browser's context.
func (b *browser) join(t testing.TB) context.Context {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.context == nil || b.context.Err() != nil {
		if err := b.start(); err != nil {
			t.Fatalf("a browser for the tests: %v", err)
		}
	}
	return b.context
}

// End ends the browser if a test has started it. It is for TestMain.
func End() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.context != nil {
		shared.stop()
		shared.context = nil
	}
}

// start starts Chromium with its own profile. It shows only our pages, so it needs no sandbox, which root cannot use.
func (b *browser) start() error {
	path, err := program()
	if err != nil {
		return err
	}
	sweep()
	profile, err := os.MkdirTemp("", fmt.Sprintf("bahi-browser-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	b.camera = filepath.Join(profile, "camera.mjpeg")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(startsTimeout),
		chromedp.Flag("headless", "new"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("disable-features", "site-per-process,Translate,BackForwardCache,SpareRendererForSitePerProcess"),
		chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-file-for-fake-video-capture", b.camera),
	)
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	opened, leave := chromedp.NewContext(allocator)
	b.context = opened
	b.stop = func() {
		_ = chromedp.Cancel(opened) // asks it to exit, and waits
		leave()
		free() // kills it by its id if it has not exited
		_ = os.RemoveAll(profile)
	}
	if err := chromedp.Run(opened); err != nil {
		b.stop()
		b.context = nil
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// Camera sets the picture that the browser's camera takes in all pages.
func Camera(t testing.TB, picture image.Image) {
	t.Helper()
	shared.join(t)
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, picture, nil))
	require.NoError(t, os.WriteFile(shared.camera, file.Bytes(), 0o600))
}

// sweep removes the profiles of killed test processes, whose browsers have ended too.
func sweep() {
	profiles, err := filepath.Glob(filepath.Join(os.TempDir(), "bahi-browser-*"))
	if err != nil {
		return
	}
	for _, profile := range profiles {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(profile), "bahi-browser-%d-", &pid); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(profile)
		}
	}
}

// program finds Chromium, or installs Debian's package.
var program = sync.OnceValues(func() (string, error) {
	path, err := find()
	if err == nil || os.Geteuid() != 0 {
		return path, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installsTimeout)
	defer cancel()
	err = distro.Alone(func() error {
		return distro.Install(ctx, slog.Default(), func(ctx context.Context, options []string) ([]string, error) {
			_, err := distro.Run(ctx, "apt-cache", append(options, "show", "chromium")...)
			return []string{"chromium", "fonts-dejavu-core", "fonts-lohit-deva", "fonts-lohit-gujr"}, err
		})
	})
	if err != nil {
		return "", err
	}
	return find()
})

func find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("Chromium is missing: apt-get install chromium") //nolint:staticcheck // ST1005: a name
}

// axe is axe-core 4.14.1 (npm axe-core, MPL-2.0), unmodified.
//
//go:embed testdata/axe.min.js
var axe string

// violation is a rule of axe that a page violates.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Accessible checks the page against the automatically testable rules of WCAG up to level AA and axe's best practices.
func (p *Page) Accessible() {
	p.t.Helper()
	p.axe(`document`, `{}`)
}

// Legible checks the contrast of one text for each combination of colours and sizes that seen lacks, and adds the combination to seen. It
// reports whether there was such a combination.
func (p *Page) Legible(seen *sync.Map) bool {
	p.t.Helper()
	var found, fresh []string
	p.Evaluate(`{`+styles+`[...window.styled.keys()]}`, &found)
	for _, style := range found {
		if _, known := seen.LoadOrStore(style, true); !known {
			fresh = append(fresh, style)
		}
	}
	if fresh == nil {
		return false
	}
	chosen, err := json.Marshal(fresh)
	require.NoError(p.t, err)
	p.axe(`{include: `+string(chosen)+`.map(style => window.styled.get(style))}`, `{runOnly: ["color-contrast", "link-in-text-block"]}`)
	return true
}

// styles finds an element for each combination of colours and sizes of a shown text, with those of the text around it.
const styles = `window.styled = new Map(), window.drawn = new Map();
	const below = e => {
		if (!e) return "";
		if (!window.drawn.has(e)) {
			const {backgroundColor, backgroundImage, opacity} = getComputedStyle(e), own = backgroundColor + backgroundImage + opacity;
			window.drawn.set(e, own === "rgba(0, 0, 0, 0)none1" ? below(e.parentElement) : below(e.parentElement) + own);
		}
		return window.drawn.get(e);
	};
	for (const e of document.querySelectorAll("body *")) {
		const text = e.matches("input, select, textarea") || [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
		if (!text || !e.checkVisibility()) continue;
		const {fontSize, fontWeight, textShadow, textDecorationLine, color} = getComputedStyle(e), around = getComputedStyle(e.parentElement);
		const style = [e.tagName === "A", fontSize, fontWeight, textShadow, textDecorationLine, color, around.color, below(e)].join(" ");
		if (!window.styled.has(style)) window.styled.set(style, e);
	}
`

// Structured checks the page as Accessible does, without the contrasts of its texts.
func (p *Page) Structured() {
	p.t.Helper()
	p.axe(`document`, `{rules: {"color-contrast": {enabled: false}, "link-in-text-block": {enabled: false}}}`)
}

// Reachable checks the rules of a layout: names and sizes of controls, and whether the keyboard scrolls each part that scrolls.
func (p *Page) Reachable() {
	p.t.Helper()
	p.axe(`document`, `{runOnly: ["target-size", "scrollable-region-focusable", "button-name", "link-name"]}`)
}

// axe runs the rules of axe that the options select on a part of the page. No rule needs files that axe would fetch first.
func (p *Page) axe(part, options string) {
	p.t.Helper()
	if !p.Is(`window.axe`) { // the tab's later pages have it
		p.run(chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(axe).Do(ctx)
			return err
		}), chromedp.Evaluate(axe+`; undefined`, nil))
	}
	var found []violation
	p.Evaluate(`axe.run(`+part+`, {resultTypes: ["violations"], preload: false, ...`+options+`}).then(r => r.violations.map(v =>
		({id: v.id, help: v.help, nodes: v.nodes.map(n => ({html: n.html, failureSummary: n.failureSummary}))})))`, &found)
	for _, v := range found {
		for _, n := range v.Nodes {
			p.t.Errorf("%s: %s (%s): %s\n%s", p.URL(), v.ID, v.Help, n.HTML, n.Summary)
		}
	}
}

// PressAlt presses a key with Alt and waits for the next page.
func (p *Page) PressAlt(key string) {
	p.t.Helper()
	p.leaving(func() { p.with(input.ModifierAlt, key) })
}

// PressCtrl presses a key with Ctrl and waits for the next page.
func (p *Page) PressCtrl(key string) { p.t.Helper(); p.leaving(func() { p.Ctrl(key) }) }

// Ctrl presses a key with Ctrl.
func (p *Page) Ctrl(key string) { p.t.Helper(); p.with(input.ModifierCtrl, key) }

func (p *Page) with(modifier input.Modifier, key string) {
	p.t.Helper()
	p.Keystrokes++
	p.run(chromedp.KeyEvent(key, chromedp.KeyModifiers(modifier)))
}

// Phone makes the window that of a phone with a touch screen.
func (p *Page) Phone() {
	p.t.Helper()
	p.Look(360, 740, false)
	p.run(emulation.SetTouchEmulationEnabled(true))
}

// Tap touches the middle of the first match of the CSS selector. It touches again if the page got no click: a busy browser may take a touch
// for a long press, and the page may move under it.
func (p *Page) Tap(selector string) {
	p.t.Helper()
	for clicked := false; !clicked; {
		var at struct{ X, Y float64 }
		p.Until(`document.querySelector(` + quote(selector) + `)?.checkVisibility()`)
		p.Evaluate(`(e => {
			window.clicked = new Promise(done => {
				document.addEventListener("click", () => done(true), {once: true, capture: true});
				for (const end of ["touchend", "touchcancel"])
					document.addEventListener(end, () => setTimeout(done, 1000, false), {once: true, capture: true});
			});
			e.scrollIntoView({block: "center", behavior: "instant"});
			const box = e.getBoundingClientRect();
			return {X: box.x + box.width / 2, Y: box.y + box.height / 2};
		})(document.querySelector(`+quote(selector)+`))`, &at)
		p.run(input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: at.X, Y: at.Y}}),
			input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}))
		clicked = p.clicked()
	}
}

// clicked reports whether the touch became a click. A page that is gone was left by a click.
func (p *Page) clicked() (is bool) {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.Evaluate(`window.clicked ?? true`, &is, awaited))
	return is || err != nil
}

// TapOn taps and waits for the next page.
func (p *Page) TapOn(selector string) {
	p.t.Helper()
	p.leaving(func() { p.Tap(selector) })
}
