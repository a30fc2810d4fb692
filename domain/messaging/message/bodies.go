package message

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"bahi/domain/fault"
	"bahi/domain/person"
)

// The maximum lengths in characters of a text, of a caption, and of an image's URL (CONTRACT.md D19).
const (
	longestText    = 4096
	longestCaption = 1024
	longestURL     = 2048
)

// Text is the body of a text to send.
type Text struct {
	To        string `json:"to" maxLength:"40" doc:"Phone number with country code"`
	Message   string `json:"message" maxLength:"4096" doc:"Text of the message"`
	ChannelID int64  `json:"channelId" minimum:"1" doc:"ID of the channel"`
}

// Image is the body of an image to send.
type Image struct {
	To        string `json:"to" maxLength:"40" doc:"Phone number with country code"`
	ImageURL  string `json:"imageUrl" maxLength:"2048" doc:"Public URL of the image"`
	Caption   string `json:"caption,omitempty" maxLength:"1024" doc:"Text below the image"`
	ChannelID int64  `json:"channelId" minimum:"1" doc:"ID of the channel"`
}

// Draft is a normalised message to send.
type Draft struct {
	Channel         int64
	To, Text, Image string
	Template        int64    // id of its template, with the filled text in Text; 0: none
	Picture         *Picture // the picture of Image; nil: Image is an external URL
}

// Draft returns the normalised text, or its faults.
func (b Text) Draft() (Draft, error) {
	to, wrongTo := dialled(b.To)
	text, err := said("message", b.Message)
	return Draft{Channel: b.ChannelID, To: to, Text: text}, fault.Join(wrongTo, err)
}

// dialled returns the phone of the recipient.
func dialled(to string) (string, error) {
	number, err := person.ParseE164("to", to)
	if err == nil && number == "" {
		err = fault.Wrong("to", "must not be empty")
	}
	return number, err
}

// FromVisitor is the body of a message from a visitor of a page.
type FromVisitor struct {
	Text string `json:"text" maxLength:"4096" doc:"Text of the message"`
}

// Said returns the normalised text, or its faults.
func (b FromVisitor) Said() (string, error) { return said("text", b.Text) }

// said returns a text, and refuses an empty one.
func said(field, text string) (string, error) {
	text, err := written(field, text, longestText)
	if err == nil && text == "" {
		err = fault.Wrong(field, "must not be empty")
	}
	return text, err
}

// Draft returns the normalised image, or its faults.
func (b Image) Draft() (Draft, error) {
	to, wrongTo := dialled(b.To)
	d, err := pictured(b.ImageURL, b.Caption)
	d.Channel, d.To = b.ChannelID, to
	return d, fault.Join(wrongTo, err)
}

// pictured returns a draft of an image with a caption.
func pictured(address, caption string) (Draft, error) {
	caption, err := written("caption", caption, longestCaption)
	image := strings.TrimSpace(address)
	if u, parsed := url.Parse(image); parsed != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" ||
		len(image) > longestURL {
		err = fault.Join(fault.Wrong("imageUrl", "expected an address like https://cdn.example.org/a.jpg"), err)
	}
	return Draft{Text: caption, Image: image}, err
}

// written returns a text without surrounding space.
func written(field, text string, longest int) (string, error) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > longest {
		return "", fault.Wrong(field, "at most "+strconv.Itoa(longest)+" characters")
	}
	return text, nil
}

// ToContact is the body of a message to a contact: a text, an image, or a template.
type ToContact struct {
	ChannelID      int64             `json:"channelId" minimum:"1" doc:"ID of the channel"`
	Text           string            `json:"text,omitempty" maxLength:"4096" doc:"Text of the message"`
	ImageURL       string            `json:"imageUrl,omitempty" maxLength:"2048" doc:"Public URL of an image"`
	Caption        string            `json:"caption,omitempty" maxLength:"1024" doc:"Text below the image"`
	TemplateID     int64             `json:"templateId,omitempty" minimum:"1" doc:"ID of the template"`
	TemplateParams map[string]string `json:"templateParams,omitempty" doc:"Value of each parameter of the template; {{name}} and {{phone}} stand for the contact's"`

	Picture *Picture `json:"-"` // instead of an address
}

// Picture is an outgoing image that Bahi stores.
type Picture struct {
	Type  string // media type
	Bytes []byte
	Key   string // key of the blob
}

// Draft returns the normalised message, or its faults. For a template it has only the id.
func (b ToContact) Draft() (Draft, error) {
	given := 0
	for _, is := range []bool{b.Text != "", b.ImageURL != "", b.Picture != nil, b.TemplateID != 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return Draft{}, fault.Fields(fault.Field{Field: "text", Message: "expected one of text, imageUrl and templateId",
			Of: []string{"text", "imageUrl", "templateId"}})
	case b.TemplateID == 0 && len(b.TemplateParams) > 0:
		return Draft{}, fault.Wrong("templateParams", "allowed only with a template")
	case b.Picture != nil:
		caption, err := written("caption", b.Caption, longestCaption)
		return Draft{Channel: b.ChannelID, Text: caption, Picture: b.Picture}, err
	case b.Caption != "" && b.ImageURL == "":
		return Draft{}, fault.Wrong("caption", "allowed only with an image")
	case b.ImageURL != "":
		d, err := pictured(b.ImageURL, b.Caption)
		d.Channel = b.ChannelID
		return d, err
	case b.Text != "":
		text, err := said("text", b.Text)
		return Draft{Channel: b.ChannelID, Text: text}, err
	}
	return Draft{Channel: b.ChannelID, Template: b.TemplateID}, nil
}

// Number returns the number of a message's id, as in msg_8121.
func Number(field, id string) (int64, error) {
	text, found := strings.CutPrefix(id, Name(""))
	number, err := strconv.ParseInt(text, 10, 64)
	if !found || err != nil || number < 1 {
		return 0, fault.Wrong(field, "expected the id of a message, as in msg_8121")
	}
	return number, nil
}
