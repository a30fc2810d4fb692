package message

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"bahi/domain/fault"
	"bahi/domain/person"
)

// The longest text, the longest text below an image, and the longest address of one, in characters (CONTRACT.md D19).
const (
	longestText    = 4096
	longestCaption = 1024
	longestURL     = 2048
)

// Text is the body of a text to send.
type Text struct {
	To        string `json:"to" maxLength:"40" doc:"Phone with the country's code"`
	Message   string `json:"message" maxLength:"4096" doc:"Text of the message"`
	ChannelID int64  `json:"channelId" minimum:"1" doc:"ID of the channel"`
}

// Image is the body of an image to send.
type Image struct {
	To        string `json:"to" maxLength:"40" doc:"Phone with the country's code"`
	ImageURL  string `json:"imageUrl" maxLength:"2048" doc:"Publicly reachable"`
	Caption   string `json:"caption,omitempty" maxLength:"1024" doc:"Text below the image"`
	ChannelID int64  `json:"channelId" minimum:"1" doc:"ID of the channel"`
}

// Draft is a message to send, in order.
type Draft struct {
	Channel         int64
	To, Text, Image string
	Template        int64    // it is of; Text is what the person reads; 0: none
	Picture         *Picture // which Image links to; nil: Image is an address of others
}

// Draft returns the text in order, or what is wrong with it.
func (b Text) Draft() (Draft, error) {
	to, wrongTo := dialled(b.To)
	text, err := said("message", b.Message)
	return Draft{Channel: b.ChannelID, To: to, Text: text}, fault.Join(wrongTo, err)
}

// dialled returns the number that a message goes to.
func dialled(to string) (string, error) {
	number, err := person.ParseE164("to", to)
	if err == nil && number == "" {
		err = fault.Fields(fault.Field{Field: "to", Message: "must not be empty"})
	}
	return number, err
}

// FromVisitor is the body of a message that the visitor of a page writes.
type FromVisitor struct {
	Text string `json:"text" maxLength:"4096" doc:"Text of the message"`
}

// Said returns the text in order, or what is wrong with it.
func (b FromVisitor) Said() (string, error) { return said("text", b.Text) }

// said returns a text that is not empty.
func said(field, text string) (string, error) {
	text, err := written(field, text, longestText)
	if err == nil && text == "" {
		err = fault.Fields(fault.Field{Field: field, Message: "must not be empty"})
	}
	return text, err
}

// Draft returns the image in order, or what is wrong with it.
func (b Image) Draft() (Draft, error) {
	to, wrongTo := dialled(b.To)
	d, err := pictured(b.ImageURL, b.Caption)
	d.Channel, d.To = b.ChannelID, to
	return d, fault.Join(wrongTo, err)
}

// pictured returns a draft of an image with a text below it.
func pictured(address, caption string) (Draft, error) {
	caption, err := written("caption", caption, longestCaption)
	image := strings.TrimSpace(address)
	if u, parsed := url.Parse(image); parsed != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" ||
		len(image) > longestURL {
		err = fault.Join(fault.Fields(fault.Field{Field: "imageUrl", Message: "expected an address like https://cdn.example.org/a.jpg"}), err)
	}
	return Draft{Text: caption, Image: image}, err
}

// written returns a text without the space around it.
func written(field, text string, longest int) (string, error) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > longest {
		return "", fault.Fields(fault.Field{Field: field, Message: "at most " + strconv.Itoa(longest) + " characters"})
	}
	return text, nil
}

// ToContact is the body of a message to a contact: a text, an image, or a template.
type ToContact struct {
	ChannelID      int64             `json:"channelId" minimum:"1" doc:"ID of the channel"`
	Text           string            `json:"text,omitempty" maxLength:"4096" doc:"Text of the message"`
	ImageURL       string            `json:"imageUrl,omitempty" maxLength:"2048" doc:"Publicly reachable"`
	Caption        string            `json:"caption,omitempty" maxLength:"1024" doc:"Below the image"`
	TemplateID     int64             `json:"templateId,omitempty" minimum:"1" doc:"ID of the template"`
	TemplateParams map[string]string `json:"templateParams,omitempty" doc:"A value for each of the template's parameters; {{name}} and {{phone}} are the contact's"`

	Picture *Picture `json:"-"` // instead of an address
}

// Picture is an image that goes out and is kept here.
type Picture struct {
	Type  string // media type
	Bytes []byte
	Key   string // of the blob
}

// Draft returns the message in order, or what is wrong with it. Of a template, only its id is in it.
func (b ToContact) Draft() (Draft, error) {
	given := 0
	for _, is := range []bool{b.Text != "", b.ImageURL != "", b.Picture != nil, b.TemplateID != 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return Draft{}, fault.Fields(fault.Field{Field: "text", Message: "expected one of text, imageUrl and templateId"})
	case b.Picture != nil:
		caption, err := written("caption", b.Caption, longestCaption)
		return Draft{Channel: b.ChannelID, Text: caption, Picture: b.Picture}, err
	case b.Caption != "" && b.ImageURL == "":
		return Draft{}, fault.Fields(fault.Field{Field: "caption", Message: "expected below an image only"})
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
		return 0, fault.Fields(fault.Field{Field: field, Message: "expected the id of a message, as in msg_8121"})
	}
	return number, nil
}
