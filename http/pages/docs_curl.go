package pages

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// sampleID is the id in recorded examples.
const sampleID = "0199c2f4-8a10-7c3e-9b52-5d1f0c6a7e21"

// sample returns a value for a parameter of a first call.
func (p parameter) sample(workspace string) any {
	byName := map[string]any{"name": "books", "format": "csv", "q": "silver"}
	switch {
	case p.Example != nil:
		return p.Example
	case len(p.Options) > 0:
		return p.Options[0]
	case p.Kind == "whole":
		return json.Number("1")
	case p.Name == "workspace_id" && strings.Trim(workspace, "0-") != "":
		return workspace
	case byName[p.Name] != nil:
		return byName[p.Name]
	default:
		return sampleID
	}
}

// withFirstIDs replaces each numeric id of an example by 1, which is more likely to exist.
func withFirstIDs(example any) any {
	switch e := example.(type) {
	case map[string]any:
		for name, value := range e {
			if _, is := value.(json.Number); is && (name == "id" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id")) {
				e[name] = json.Number("1")
			} else {
				e[name] = withFirstIDs(value)
			}
		}
	case []any:
		for i, value := range e {
			e[i] = withFirstIDs(value)
		}
	}
	return example
}

// sampleFiles are names of files to upload, by operation.
var sampleFiles = map[string]string{
	"import-products": "catalog.csv", "import-messaging-contacts": "contacts.csv", "add-bot-file": "faq.txt",
}

// curl returns a command that calls the operation with the example's path and body. The command reads the server's address from the
// shell variable BAHI, and an API key from KEY.
func (o *operation) curl(workspace string) string {
	values, query := o.samples(workspace), url.Values{}
	path := variable.ReplaceAllStringFunc(o.Path, func(name string) string { return url.PathEscape(textOf(values[strings.Trim(name, "{}")])) })
	for _, p := range o.Params {
		if p.In == "query" && p.Required {
			query.Set(p.Name, textOf(values[p.Name]))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	words := []string{"curl -sS"}
	if o.Method != http.MethodGet {
		words[0] += " -X " + o.Method
	}
	words[0] += o.output() + ` "$BAHI` + path + `"`
	if !o.Public {
		words = append(words, `-H "Authorization: Bearer $KEY"`)
	}
	switch {
	case o.Raw:
		words = append(words, `-H "Content-Type: application/octet-stream"`, "--data-binary '{}'")
	case o.Files:
		example, _ := o.Example.(map[string]any)
		for _, p := range o.Body.Properties {
			switch value := textOf(example[p.Name]); {
			case p.Kind == "file":
				words = append(words, "-F "+quoted(p.Name+"=@"+cmp.Or(sampleFiles[o.ID], "page.png")))
			case value == "" && p.Required && p.Kind == "whole": // an id
				words = append(words, "-F "+quoted(p.Name+"=1"))
			case value != "":
				words = append(words, "-F "+quoted(p.Name+"="+value))
			}
		}
	case o.Body != nil:
		body := cmp.Or(compact(o.Example), "{}")
		if len(body) > 72 {
			body = indent([]byte(body))
		}
		words = append(words, `-H "Content-Type: application/json"`, "-d "+quoted(body))
	}
	return strings.Join(words, " \\\n  ")
}

// output returns curl's options for the response: no buffering for a stream, and a file on disk for a binary.
func (o *operation) output() string {
	endings := map[string]string{
		"application/pdf": "pdf", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx", "image/png": "png",
	}
	for _, a := range o.Answers {
		if slices.Contains(a.Kinds, "text/event-stream") {
			return " -N"
		}
		for _, kind := range a.Kinds {
			if ending := endings[kind]; ending != "" {
				return " -o answer." + ending
			}
		}
	}
	return ""
}

// quoted returns a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
