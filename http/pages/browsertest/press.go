package browsertest

import (
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// PressAlt presses a key with Alt and waits for the next page.
func (p *Page) PressAlt(key string) { p.t.Helper(); p.press(key, input.ModifierAlt) }

// PressCtrl presses a key with Ctrl and waits for the next page.
func (p *Page) PressCtrl(key string) { p.t.Helper(); p.press(key, input.ModifierCtrl) }

func (p *Page) press(key string, with input.Modifier) {
	p.t.Helper()
	p.leaving(func() { p.run(chromedp.KeyEvent(key, chromedp.KeyModifiers(with))) })
}
