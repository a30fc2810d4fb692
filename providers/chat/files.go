package chat

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"bahi/domain/messaging/channel"
	"bahi/domain/messaging/network"
)

// MaxFile is the maximum size of a file, in bytes (CONTRACT.md N11).
const MaxFile = 16 << 20

// File fetches the file of a message. ref is the file's URL or its id at the network. The error is a [*network.Failure]. A sandbox has no
// files. After five successive failures of a channel's files, File does not call for half a minute, because files of other channels wait
// behind them.
func (n *Networks) File(ctx context.Context, a network.Account, ref string) (data []byte, contentType string, err error) {
	failed := n.files.call(a.Channel, func() (f *network.Failure) {
		data, contentType, f = n.fetch(ctx, a, ref)
		return f
	})
	if failed != nil {
		return nil, "", failed
	}
	return data, contentType, nil
}

func (n *Networks) fetch(ctx context.Context, a network.Account, ref string) (data []byte, contentType string, failed *network.Failure) {
	via, a := n.of(a)
	var at call
	switch by := via.(type) {
	case *Sandbox:
		failed = &network.Failure{Reason: network.Unconfigured}
	case telegram:
		at, failed = by.file(ctx, a, ref)
	default:
		at = call{method: http.MethodGet, url: ref}
		if !strings.HasPrefix(ref, "https://") && !strings.HasPrefix(ref, "http://") {
			at, failed = n.wire.cloudFile(ctx, a, ref)
		}
	}
	if failed != nil {
		return nil, "", failed
	}
	at.most = MaxFile
	got, failed := do(ctx, n.wire.client, n.wire.timeout, at)
	if failed == nil && got.status != http.StatusOK {
		failed = got.read(nil, func(answer) *network.Failure { return nil })
	}
	if failed != nil {
		return nil, "", failed
	}
	if contentType = http.DetectContentType(got.body); !kept(contentType) {
		return nil, "", &network.Failure{Reason: network.Content}
	}
	return got.body, contentType, nil
}

// kept reports whether Bahi stores files of a type. It refuses types that a browser runs.
func kept(contentType string) bool {
	family, _, _ := strings.Cut(contentType, "/")
	name, _, _ := strings.Cut(contentType, ";")
	return slices.Contains([]string{"image", "audio", "video"}, family) ||
		slices.Contains([]string{"application/pdf", "application/ogg", "application/zip", "application/octet-stream", "text/plain"}, name)
}

// cloudFile requests a file's address. The address is valid for five minutes and requires the token too.
func (w wire) cloudFile(ctx context.Context, a network.Account, id string) (call, *network.Failure) {
	if strings.ContainsAny(id, "/?#%") || a.Type != channel.Chat {
		return call{}, &network.Failure{Reason: network.Content}
	}
	var is struct {
		URL string `json:"url"`
	}
	if failed := w.ask(ctx, jsonCall(http.MethodGet, a.BaseURL+"/"+id, a.APIKey, nil), &is, cloudFailure); failed != nil {
		return call{}, failed
	}
	return jsonCall(http.MethodGet, is.URL, a.APIKey, nil), nil
}

// file requests a file's address.
func (n telegram) file(ctx context.Context, a network.Account, id string) (call, *network.Failure) {
	var is struct {
		Result struct {
			Path string `json:"file_path"`
		} `json:"result"`
	}
	failed := n.bot(ctx, a, "getFile", map[string]string{"file_id": id}, &is)
	return call{method: http.MethodGet, url: a.BaseURL + "/file/bot" + a.APIKey + "/" + is.Result.Path}, failed
}
