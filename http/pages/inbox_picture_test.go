package pages_test

import (
	"image/color"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/internal/test/apptest"
)

var shownPicture = regexp.MustCompile(`<img src="(/blobs/[^"]+)"`)

func TestInboxSendsPictures(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c, v := o.Bearer(o.Key(o.Home, messages).Key), o.Visitor()
	b := browser{t, v}
	b.submit("/app/sign-in", "/app/sign-in", "key", o.Key(o.Home, messages).Key).Leads("/app/")
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345002", "Asha", "Is A-204 ready?", 0)
	picture := string(apptest.Painted(t, color.White, 8, 8))
	draw := func(pairs ...string) url.Values {
		values := form(b.get(talk).Is(200).Says("Picture"), talk+"/messages", "")
		values = with(values, pairs...)
		return values
	}

	send := func(values url.Values, content string) apptest.Page {
		return upload(t, v.HTTP, o.URL+talk+"/messages", values, "a.png", content)
	}
	for _, c := range []struct {
		values         url.Values
		content, fault string
	}{
		{draw("text", "Here it is"), "%PDF", `id="f-file-error">This is no picture.`},
		{draw("text", "Here it is"), strings.Repeat("a", 16<<20+1), `id="f-file-error">The picture is too large`},
		{draw("text", "Here it is"+strings.Repeat("a", 1020)), picture, `id="f-text-error">at most 1024 characters`},
		{draw("text", "Here it is", "imageUrl", "https://cdn.example.org/a.jpg"), picture, `id="f-file-error">Choose one picture.`},
	} {
		refused := send(c.values, c.content)
		require.Contains(t, refused.Text, c.fault)
		require.Contains(t, refused.Text, "Here it is", "what was written stays")
	}
	require.NotContains(t, b.get(talk).Text, "<img")

	twice := draw("text", "Here it is")
	for range 2 {
		require.Contains(t, send(twice, picture).Header.Get("Location"), "done=answered")
	}
	page := b.get(talk).Is(200).Says("Here it is")
	found := shownPicture.FindAllStringSubmatch(page.Text, -1)
	require.Len(t, found, 1)
	require.Equal(t, "image/jpeg", b.get(strings.ReplaceAll(found[0][1], "&amp;", "&")).Is(200).Header.Get("Content-Type"))

	reader := byKey(o, o.Home, `{"messaging":"read"}`)
	require.NotContains(t, reader.get(talk).Is(200).Says("Here it is").Text, `type="file"`)
	abroad := byKey(o, o.Abroad, messages)
	abroad.get(talk).Is(404)
}

func TestAPictureIsSentByThePhone(t *testing.T) {
	t.Parallel()
	o := apptest.Share(t)
	c := o.Bearer(o.Key(o.Home, answering).Key)
	talk := arrives(o, c, channelOf(c, "Sales"), "919812345002", "Asha", "Is A-204 ready?", 0)
	file := filepath.Join(t.TempDir(), "anklet.png")
	require.NoError(t, os.WriteFile(file, apptest.Painted(t, color.RGBA{160, 60, 60, 255}, 900, 600), 0o600))
	p := enter(o, answering)
	p.Look(360, 740, false)
	p.Go(talk)
	p.Choose("#f-file", file)
	p.Type("#f-text", "Yes, here it is.")
	p.Submit("#write .primary")
	require.Contains(t, p.Text("main"), "Sent.")
	p.Until(`document.querySelector(".said .out img").naturalWidth === 900`)
	fits(t, p, talk, "en")
}
