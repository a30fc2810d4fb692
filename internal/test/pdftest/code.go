package pdftest

import (
	"image"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/stretchr/testify/require"
)

// pictures is the number of pictures of a page.
const pictures = 5

// Code returns the text of the QR code on a print of 300 dots per inch, with noise as of paper and a scanner. Like a camera, it looks at
// several pictures.
func Code(t testing.TB, pdf []byte) string {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "it.pdf")
	require.NoError(t, os.WriteFile(file, pdf, 0o600))
	out, err := exec.CommandContext(t.Context(), "pdftoppm", "-r", "300", "-gray", "-png", file, filepath.Join(folder,
		"page")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	pages, err := filepath.Glob(filepath.Join(folder, "page*.png"))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 0))
	for _, page := range pages {
		f, err := os.Open(page)
		require.NoError(t, err)
		picture, err := png.Decode(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for range pictures {
			scan := image.NewGray(picture.Bounds())
			draw.Draw(scan, scan.Rect, picture, image.Point{}, draw.Src)
			for i, gray := range scan.Pix {
				scan.Pix[i] = gray/8*7 + uint8(random.UintN(32))
			}
			bitmap, err := gozxing.NewBinaryBitmapFromImage(scan)
			require.NoError(t, err)
			if found, err := qrcode.NewQRCodeReader().Decode(bitmap, nil); err == nil {
				return found.GetText()
			}
		}
	}
	require.Fail(t, "no page has a code")
	return ""
}
