package botsource_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"

	"bahi/domain/messaging/botsource"
	"bahi/internal/test/eventtest"
)

var (
	file = botsource.FileAdded{Bot: 1, Name: "faq.txt", MediaType: "text/plain", Size: 9, Hash: "h"}
	page = botsource.PageAdded{Bot: 1, URL: "https://shop.example/faq", PageKey: "k"}
)

func TestASourceIsReadOrNot(t *testing.T) {
	t.Parallel()
	given := eventtest.Given(t, botsource.Kind, file)
	read := botsource.Read{Chunks: 3}
	given.Case("it is read").When(botsource.Conclude{Read: read}).Then(read)
	given.And(read).Case("once").When(botsource.Conclude{Read: read}).ThenNothing()
	given.Case("it cannot be read").When(botsource.Conclude{Failure: "no text"}).Then(botsource.ReadFailed{Error: "no text"})
	given.And(botsource.Deleted{}).Case("it is gone meanwhile").When(botsource.Conclude{Read: read}).ThenNothing()
	given.Case("a file is not fetched again").When(botsource.Request{}).ThenFails(botsource.ErrNoPage)
	given.Case("a file is no page").When(botsource.Delete{Bot: 1, Page: true}).ThenFails(botsource.ErrNoPage)
	given.Case("another bot's").When(botsource.Delete{Bot: 2}).ThenFails(botsource.ErrNoFile)

	fetched := botsource.Read{Chunks: 1, Title: "FAQ", Hash: "h", FetchedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	of := eventtest.Given(t, botsource.Kind, page)
	of.Case("it is about to be fetched").When(botsource.Request{}).ThenNothing()
	of.And(fetched).Case("a page is fetched again").When(botsource.Request{}).Then(botsource.Requested{})
	require.Equal(t, "FAQ", of.And(fetched).State().Name)
}

func TestAddressesAreComparedInOneForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" HTTPS://Shop.Example:443/FAQ#top ": "https://shop.example/FAQ", "http://shop.example": "http://shop.example/",
		"http://shop.example.:8080/?q=1": "http://shop.example:8080/?q=1",
		"https://सोना.example/a":         "https://xn--31b2aw5a.example/a", "http://[2001:DB8::1]/": "http://[2001:db8::1]/",
	} {
		got, err := botsource.Normal(text)
		require.NoError(t, err, text)
		if !strings.Contains(text, "सोना") {
			require.Equal(t, want, got)
		} else {
			require.True(t, strings.HasPrefix(got, "https://xn--"), got)
		}
	}
	for _, text := range []string{"", "shop.example", "ftp://shop.example", "https://", "https://user:secret@shop.example/",
		"https://shop.example/a b", "https://shop.example/" + strings.Repeat("a", 2048), "https://a\x00b/"} {
		_, err := botsource.Normal(text)
		require.Error(t, err, text)
	}
}

func TestAFileIsTextByItsContent(t *testing.T) {
	t.Parallel()
	utf16le := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune("સોનું ₹")) {
		utf16le = append(utf16le, byte(unit), byte(unit>>8))
	}
	for _, c := range []struct{ data, kind, text string }{
		{"%PDF-1.7\n\x00\x01", botsource.PDF, ""},
		{"junk\n%PDF-1.4", botsource.PDF, ""},
		{"\ufeffसोना", botsource.Text, "सोना"},
		{string(utf16le), botsource.Text, "સોનું ₹"},
		{"caf\xe9 \x93quoted\x94", botsource.Text, "café “quoted”"},
		{"<!-- x -->\n<!DOCTYPE html><p>hi", botsource.HTML, "<!-- x -->\n<!DOCTYPE html><p>hi"},
	} {
		kind, err := botsource.MediaType([]byte(c.data))
		require.NoError(t, err)
		require.Equal(t, c.kind, kind)
		if c.kind != botsource.PDF {
			text, err := botsource.Decode([]byte(c.data), "")
			require.NoError(t, err)
			require.Equal(t, c.text, text)
		}
	}
	for _, data := range []string{"\x89PNG\r\n\x1a\n\x00\x00", "a\x00b", "\xff\xfea", "caf\xe9\x81", "\x7fELF\x02\x01\x01"} {
		_, err := botsource.MediaType([]byte(data))
		require.ErrorIs(t, err, botsource.ErrNotText, "%q", data)
	}
}

func TestATextIsReadInTheCharacterSetThatItDeclares(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"gb2312": "手镯 300 元", "gbk": "手鐲 300 元", "gb18030": "手镯 ₹300", "big5": "手鐲 300 元", "shift_jis": "腕輪は三百円", "euc-jp": "腕輪は三百円",
		"iso-2022-jp": "腕輪は三百円", "euc-kr": "팔찌 300",
		"windows-1251": "Браслет 300", "koi8-r": "Браслет 300", "iso-8859-2": "Náramek řetěz", "windows-1256": "سوار 300",
		"windows-874": "กำไล 300", "utf-16le": "कड़ा 300", "utf-8": "कड़ा ₹300",
	} {
		encoding, err := htmlindex.Get(name)
		require.NoError(t, err)
		for declares, page := range map[string]string{
			"text/html; charset=" + name: "<p>" + text, "text/html": `<html><head><meta charset="` + name + `"></head><p>` + text,
			"":                      `<html><head><meta http-equiv="Content-Type" content="text/html; charset=` + name + `"></head><p>` + text,
			"application/xhtml+xml": `<?xml version="1.0" encoding="` + name + `"?><html><p>` + text,
		} {
			data, err := encoding.NewEncoder().Bytes([]byte(page))
			require.NoError(t, err, name)
			if name == "utf-16le" && !strings.Contains(declares, "charset") {
				continue // its bytes cannot declare it
			}
			got, err := botsource.Decode(data, declares)
			require.NoError(t, err, "%s, %s", name, declares)
			require.Equal(t, page, got)
		}
	}
	chinese, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte("<p>手镯的手工费是三百元，店铺每天营业"))
	require.NoError(t, err)
	for _, declares := range []string{"", "text/html; charset=utf-8", "text/html; charset=x-unknown", "text/html; charset=us-ascii"} {
		_, err = botsource.Decode(chinese, declares)
		require.ErrorIs(t, err, botsource.ErrNotText, declares)
	}
	for name, text := range map[string]string{
		"gb2312": "营业时间是九点到五点", "gbk": "營業時間", "big5": "營業時間是九點",
		"shift_jis": "営業時間は九時", "euc-kr": "영업 시간", "euc-jp": "営業時間",
		"windows-1251": "Часы работы", "windows-1256": "ساعات العمل",
	} {
		encoding, err := htmlindex.Get(name)
		require.NoError(t, err)
		data, err := encoding.NewEncoder().Bytes([]byte("<h1>Opening hours</h1><p>Our opening hours: " + text + " every day."))
		require.NoError(t, err)
		for _, declares := range []string{"", "text/html", "text/html; charset=utf-8", "text/html; charset=iso-8859-1"} {
			_, err = botsource.Decode(data, declares)
			require.ErrorIs(t, err, botsource.ErrNotText, "%s as %s", name, declares)
		}
	}
	got, err := botsource.Decode([]byte("d\x92\xe9t\xe9 \xab\xa0\x9cuvre\xa0\xbb \x97 5 \x80 \x93\xc9l\xe8ve\x94"), "text/html")
	require.NoError(t, err)
	require.Equal(t, "d’été «\u00a0œuvre\u00a0» — 5 € “Élève”", got)
	got, err = botsource.Decode([]byte("<meta charset=gb2312><p>आज दुकान खुली है"), "text/html; charset=gb2312")
	require.NoError(t, err)
	require.Contains(t, got, "आज दुकान", "it is UTF-8, whatever it declares")
}
