package pages_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

const inTalk = `location.pathname.startsWith("/app/inbox/") && document.activeElement.id === "f-text"`

// TestContactsAreAnsweredByTheKeyboard is the sixth flow of PAGES.md.
func TestContactsAreAnsweredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	c := o.Bearer(o.Key(apptest.Home, messages).Key)
	sales := channelOf(c, "Sales")
	ravi := arrives(o, c, sales, "919812345001", "Ravi", "When do you open?", time.Hour)
	asha := arrives(o, c, sales, "919812345002", "Asha", "Is A-204 ready?", 0)
	p := enter(o, answering)
	p.Look(1280, 800, false)
	p.Go("/app/inbox")
	p.Keys(kb.ArrowDown)
	p.Until(`document.activeElement.innerText === "Asha"`)
	p.Enter()
	p.Until(inTalk)
	require.Equal(t, asha, p.URL())
	p.Until(`!document.getElementById("read") && !document.querySelector(".here .unread")`) // it was seen
	require.EqualValues(t, 0, contactOf(c, asha).Unread)
	p.Write("Yes")
	arrives(o, c, sales, "919812345002", "Asha", "Hello?", 0)
	p.Until(`document.querySelectorAll(".said .in").length === 2 && !document.getElementById("read")`)
	p.Write(".")
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text("main"), "Sent.")
	require.Equal(t, "Yes.", p.Text(".said .out .text"))
	p.Until(inTalk)
	p.PressAlt("r")
	tookKeys(t, p, "answer")
	require.Contains(t, p.URL(), ravi)
	require.Contains(t, p.Text("main"), "The conversation is resolved.")
	p.Until(inTalk)
	p.PressCtrl(kb.Enter)
	require.Equal(t, "Write a message first.", p.Text("#f-text-error"))
	p.Keys(kb.Escape)
	p.Until(`document.activeElement.matches("a[aria-current]") && document.activeElement.innerText === "Ravi"`)
	p.PressAlt("r")
	require.Contains(t, p.URL(), "/app/inbox?")

	// On a phone, by touch.
	p.Look(360, 740, false)
	ravi = arrives(o, c, sales, "919812345001", "Ravi", "And on Sunday?", 0)
	p.Go("/app/inbox")
	p.Submit(".persons a")
	require.Equal(t, ravi, p.URL())
	p.Type("#f-text", "No, on Monday.")
	p.Submit("#write .primary")
	require.Contains(t, p.Texts(".said .out .text"), "No, on Monday.")
	p.Submit("#resolve")
	require.Equal(t, "resolved", contactOf(c, ravi).Status)
}

// TestAnEnquiryIsAnsweredByTheKeyboard is the second part of the sixth flow.
func TestAnEnquiryIsAnsweredByTheKeyboard(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, answering).Key)
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345002", "Asha", "Hello", 0)
	first, company := asked(o, c, `,"message":"How many?","user_phone":"+919812345002"`)
	p := enter(o, answering)
	p.Look(1280, 800, false)
	p.Go("/app/enquiries")
	second := askedOf(o, company, "")
	p.Until(`document.querySelectorAll(".rows tbody tr").length === 2`) // without a reload
	p.Keys(kb.ArrowDown, kb.ArrowDown)
	p.Enter()
	require.Equal(t, first, p.URL())
	p.TabTo("form:has([value=chat]) button")
	p.Enter()
	require.Contains(t, p.URL(), talk)
	p.Until(inTalk + ` && document.activeElement.value.includes("> How many?")`)
	p.Keys("3")
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text(".said .out .text"), "How many?")
	p.Go(first)
	require.Contains(t, p.Text(".pairs"), "Contacted")
	p.Go(second)
	p.Submit(`#acts a[href^="mailto:"]`)
	require.Contains(t, p.Text(".pairs"), "Contacted")
}
