package pages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"bahi/internal/app/apptest"
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
	p.Keys(strings.Split("Yes", "")...)
	arrives(o, c, sales, "919812345002", "Asha", "Hello?", 0)
	p.Until(`document.querySelectorAll(".said .in").length === 2 && !document.getElementById("read")`)
	p.Keys(".")
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text("main"), "Sent.")
	require.Equal(t, "Yes.", p.Text(".said .out .text"))
	p.Until(inTalk)
	p.PressCtrl(kb.Enter)
	require.Equal(t, "Write a message first.", p.Text("#f-text-error"))
	p.PressAlt("r")
	require.Contains(t, p.URL(), ravi)
	require.Contains(t, p.Text("main"), "The conversation is resolved.")
	p.Until(inTalk)
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
	o := apptest.Start(t)
	c := o.Bearer(o.Key(apptest.Home, answering).Key)
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
	p.TabTo("[value=chat]")
	p.Enter()
	require.Contains(t, p.URL(), talk)
	p.Until(inTalk + ` && document.activeElement.value.includes("> How many?")`)
	p.Keys("3")
	p.PressCtrl(kb.Enter)
	require.Contains(t, p.Text(".said .out .text"), "How many?")
	p.Go(first)
	require.Contains(t, p.Text("h1"), "Contacted")
	p.Go(second)
	p.Submit("#answer-mail")
	require.Contains(t, p.Text("h1"), "Contacted")
}

func TestInboxAndEnquiriesFit(t *testing.T) {
	t.Parallel()
	o := apptest.Start(t)
	c := o.Bearer(o.Key(apptest.Home, answering).Key)
	sales := channelOf(c, "Sales")
	arrives(o, c, sales, "919812345001", "Ravi", "When do you open?", 30*time.Hour)
	talk := arrives(o, c, sales, "919812345002", "Asha "+strings.Repeat("W", 60), "Is A-204 ready?\nI need it for a wedding on Sunday.", 0)
	path := "/api/contacts/" + strings.TrimPrefix(talk, "/app/inbox/")
	var of struct {
		ChannelID int64  `json:"channelId"`
		Text      string `json:"text,omitempty"`
		ImageURL  string `json:"imageUrl,omitempty"`
	}
	of.ChannelID, of.Text = sales, "Yes, since noon. "+strings.Repeat("Come by when you like. ", 8)
	c.POST(path+"/messages", of).Status(201)
	of.Text, of.ImageURL = "", "https://cdn.example.org/a.jpg"
	c.POST(path+"/messages", of).Status(201)
	long := "How many do you have? " + strings.Repeat("I need many of them. ", 20)
	enquiry, company := asked(o, c, `,"message":"`+long+`","quantity":3,"user_phone":"+919812345002"`)
	askedOf(o, company, "")
	p := enter(o, answering)
	for _, lang := range []string{"en", "gu"} {
		p.Speak(lang)
		for _, path := range []string{"/app/inbox", talk, "/app/enquiries", enquiry} {
			for _, width := range []int64{360, 1280} {
				fits(t, p, path, width, lang == "gu", lang)
			}
		}
	}
}
