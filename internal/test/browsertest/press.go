package browsertest

import (
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

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

// Tap touches the middle of the first match of the CSS selector.
func (p *Page) Tap(selector string) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.Until(`document.querySelector(` + quote(selector) + `)?.checkVisibility()`)
	p.Evaluate(`(e => {
		e.scrollIntoView({block: "center", behavior: "instant"});
		const box = e.getBoundingClientRect();
		return {X: box.x + box.width / 2, Y: box.y + box.height / 2};
	})(document.querySelector(`+quote(selector)+`))`, &at)
	p.run(input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: at.X, Y: at.Y}}),
		input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}))
}

// TapOn taps and waits for the next page.
func (p *Page) TapOn(selector string) {
	p.t.Helper()
	p.leaving(func() { p.Tap(selector) })
}
