package ocr

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"slices"

	"golang.org/x/sync/semaphore"

	"bahi/domain/access/picture"
	"bahi/domain/ledger/khatapage"
)

// decoding limits the pictures that are decoded to one at a time.
var decoding = semaphore.NewWeighted(1)

// scan is a page in grey.
type scan struct {
	width, height int
	pix           []byte // by rows; 0 is black

	picture *scan   // before it was turned
	angle   float64 // by which it was turned back, in degrees
}

// A page of A4 at 300 dots per inch is 3508 pixels high. Smaller pictures are doubled, much larger ones reduced.
const (
	tallest  = 3600
	shortest = 1700
)

// newScan returns a picture in grey, upright, in a size near 300 dots an inch.
func newScan(from image.Image, orientation int) *scan {
	b := from.Bounds()
	s := &scan{width: b.Dx(), height: b.Dy(), pix: make([]byte, b.Dx()*b.Dy())}
	at := luma(from)
	for y := range s.height {
		row := s.pix[y*s.width:]
		for x := range s.width {
			row[x] = at(b.Min.X+x, b.Min.Y+y)
		}
	}
	switch longest := max(s.width, s.height); {
	case longest > tallest:
		s = s.scaled(float64(tallest) / float64(longest))
	case longest < shortest:
		s = s.scaled(2)
	}
	return s.upright(orientation)
}

// luma returns a function that returns a picture's grey values.
func luma(from image.Image) func(x, y int) byte {
	switch m := from.(type) {
	case *image.Gray:
		return func(x, y int) byte { return m.Pix[m.PixOffset(x, y)] }
	case *image.YCbCr:
		return func(x, y int) byte { return m.Y[m.YOffset(x, y)] }
	default: // transparent parts show white paper
		return func(x, y int) byte {
			r, g, b, a := from.At(x, y).RGBA()
			return byte(((299*r+587*g+114*b)/1000 + 0xffff - a) >> 8)
		}
	}
}

func (s *scan) at(x, y int) byte {
	if x < 0 || y < 0 || x >= s.width || y >= s.height {
		return 255
	}
	return s.pix[y*s.width+x]
}

// bilinear interpolates between four pixels.
func (s *scan) bilinear(x, y float64) byte {
	left, top := int(math.Floor(x)), int(math.Floor(y))
	fx, fy := x-float64(left), y-float64(top)
	upper := float64(s.at(left, top))*(1-fx) + float64(s.at(left+1, top))*fx
	lower := float64(s.at(left, top+1))*(1-fx) + float64(s.at(left+1, top+1))*fx
	return byte(upper*(1-fy) + lower*fy)
}

// scaled returns the page in another size: means when it shrinks, interpolated values when it grows.
func (s *scan) scaled(factor float64) *scan {
	to := &scan{width: max(1, int(float64(s.width)*factor)), height: max(1, int(float64(s.height)*factor))}
	to.pix = make([]byte, to.width*to.height)
	for y := range to.height {
		for x := range to.width {
			if factor >= 1 {
				to.pix[y*to.width+x] = s.bilinear((float64(x)+0.5)/factor-0.5, (float64(y)+0.5)/factor-0.5)
				continue
			}
			x0, x1 := int(float64(x)/factor), max(int(float64(x)/factor)+1, int(float64(x+1)/factor))
			y0, y1 := int(float64(y)/factor), max(int(float64(y)/factor)+1, int(float64(y+1)/factor))
			sum, count := 0, 0
			for v := y0; v < min(y1, s.height); v++ {
				for u := x0; u < min(x1, s.width); u++ {
					sum += int(s.pix[v*s.width+u])
					count++
				}
			}
			to.pix[y*to.width+x] = byte(sum / max(1, count))
		}
	}
	return to
}

func (s *scan) upright(orientation int) *scan {
	if orientation == 1 {
		return s
	}
	to := &scan{width: s.width, height: s.height, pix: make([]byte, len(s.pix))}
	if orientation >= 5 {
		to.width, to.height = s.height, s.width
	}
	for y := range to.height {
		for x := range to.width {
			fromX, fromY := picture.Source(orientation, x, y, s.width-1, s.height-1)
			to.pix[y*to.width+x] = s.pix[fromY*s.width+fromX]
		}
	}
	return to
}

// straighten evens out the light, removes noise, and rotates the page so that its lines are level.
func (s *scan) straighten() {
	if s.noisy() {
		s.median()
	}
	s.evenLight()
	picture, angle := *s, s.skew()
	if math.Abs(angle) >= 0.15 {
		s.turn(angle)
	} else {
		angle = 0
	}
	if longest := max(picture.width, picture.height); longest < 3000 {
		*s = *s.scaled(3300 / float64(longest))
	}
	s.picture, s.angle = &picture, angle
}

// noisy reports whether neighbouring pixels of the paper differ much.
func (s *scan) noisy() bool {
	sum, count := 0, 0
	for y := 1; y < s.height-1; y += 7 {
		for x := 1; x < s.width-1; x += 7 {
			if v := int(s.pix[y*s.width+x]); v > 150 {
				d := 2*v - int(s.pix[y*s.width+x-1]) - int(s.pix[y*s.width+x+1])
				sum += max(d, -d)
				count++
			}
		}
	}
	return count > 0 && sum > 12*count
}

// median replaces each pixel by the median of the nine around it.
func (s *scan) median() {
	to := bytes.Clone(s.pix)
	var around [9]byte
	for y := 1; y < s.height-1; y++ {
		for x := 1; x < s.width-1; x++ {
			at := y*s.width + x
			copy(around[0:], s.pix[at-s.width-1:at-s.width+2])
			copy(around[3:], s.pix[at-1:at+2])
			copy(around[6:], s.pix[at+s.width-1:at+s.width+2])
			for i := 1; i < 9; i++ { // insertion sort
				v, j := around[i], i
				for ; j > 0 && around[j-1] > v; j-- {
					around[j] = around[j-1]
				}
				around[j] = v
			}
			to[at] = around[4]
		}
	}
	s.pix = to
}

// block is the side, in pixels, of the regions in which the light is measured.
const block = 64

// evenLight makes the paper white, even in shadows.
func (s *scan) evenLight() {
	across, down := (s.width+block-1)/block, (s.height+block-1)/block
	light := &scan{width: across, height: down, pix: make([]byte, across*down)}
	var counts [256]int
	for v := range down {
		for u := range across {
			clear(counts[:])
			total := 0
			for y := v * block; y < min((v+1)*block, s.height); y++ {
				for x := u * block; x < min((u+1)*block, s.width); x += 2 {
					counts[s.pix[y*s.width+x]]++
					total++
				}
			}
			seen, level := 0, 255 // the paper is the brightest fifth
			for ; level > 0 && seen+counts[level] < total/5; level-- {
				seen += counts[level]
			}
			light.pix[v*across+u] = byte(max(level, 60))
		}
	}
	for y := range s.height {
		for x := range s.width {
			u, v := (float64(x)-block/2)/block, (float64(y)-block/2)/block
			paper := light.bilinear(min(max(u, 0), float64(across-1)), min(max(v, 0), float64(down-1)))
			at := y*s.width + x
			s.pix[at] = byte(min(255, int(s.pix[at])*250/max(1, int(paper))))
		}
	}
}

const (
	dark    = 140
	maxSkew = 6.0 // degrees
)

// skew returns the angle, in degrees, by which the lines fall to the right: the one at which the rows are most distinct.
func (s *scan) skew() float64 {
	small := s
	if longest := max(s.width, s.height); longest > 1200 {
		small = s.scaled(1200 / float64(longest))
	}
	var xs, ys []int
	for y := range small.height {
		for x := range small.width {
			if small.pix[y*small.width+x] < dark {
				xs, ys = append(xs, x), append(ys, y)
			}
		}
	}
	if len(xs) > small.width*small.height/3 { // a dark picture
		return 0
	}
	rows := make([]int, 4*(small.height+small.width))
	score := func(angle float64) (sum int) {
		clear(rows)
		slope := math.Tan(angle * math.Pi / 180)
		for i, x := range xs {
			// With rows finer than the dots, 0 degrees would always win, because only there do rows stay half empty.
			row := int(math.Floor(float64(ys[i])-float64(x)*slope)) + len(rows)/2
			if row >= 0 && row < len(rows) {
				rows[row]++
			}
		}
		for _, n := range rows {
			sum += n * n
		}
		return sum
	}
	best := 0.0
	for _, step := range []float64{0.5, 0.1} {
		from, to := best-step*5, best+step*5
		if step == 0.5 {
			from, to = -maxSkew, maxSkew
		}
		most := -1
		for angle := from; angle <= to+step/2; angle += step {
			if n := score(angle); n > most {
				most, best = n, angle
			}
		}
	}
	return best
}

// turn rotates the page back by an angle. The page grows, so that it keeps its corners.
func (s *scan) turn(angle float64) {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	width, height := float64(s.width), float64(s.height)
	to := scan{width: int(width*cos + height*math.Abs(sin)), height: int(height*cos + width*math.Abs(sin))}
	to.pix = make([]byte, to.width*to.height)
	for y := range to.height {
		dy := float64(y) - float64(to.height)/2
		for x := range to.width {
			dx := float64(x) - float64(to.width)/2
			to.pix[y*to.width+x] = s.bilinear(width/2+dx*cos-dy*sin, height/2+dx*sin+dy*cos)
		}
	}
	*s = to
}

// markCut marks words that are less than a letter from the left or right edge of the picture. They may have lost letters.
func (s *scan) markCut(words []khatapage.Word) {
	sin, cos := math.Sincos(s.angle * math.Pi / 180)
	width, height := float64(s.picture.width), float64(s.picture.height)
	scale := (width*cos + height*math.Abs(sin)) / float64(s.width)
	for i, w := range words {
		dy := scale * float64(w.Top+w.Bottom-s.height) / 2
		left, right := scale*(float64(w.Left)-float64(s.width)/2)*cos-dy*sin, scale*(float64(w.Right)-float64(s.width)/2)*cos-dy*sin
		letter := scale * float64(w.Bottom-w.Top)
		words[i].Cut = left < letter-width/2 || right > width/2-letter
	}
}

// png returns the page as a file.
func (s *scan) png() ([]byte, error) {
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	err := e.Encode(&b, &image.Gray{Pix: s.pix, Stride: s.width, Rect: image.Rect(0, 0, s.width, s.height)})
	return b.Bytes(), err
}

// markStruck marks struck words: a line crosses their middle and continues into the gaps around them.
func (s *scan) markStruck(words []khatapage.Word) {
	var heights []int
	for _, w := range words {
		heights = append(heights, w.Bottom-w.Top)
	}
	if len(heights) == 0 {
		return
	}
	slices.Sort(heights)
	usual := heights[len(heights)/2]
	for i := range words {
		w := &words[i]
		height := w.Bottom - w.Top
		if 2*height < usual || 2*(w.Right-w.Left) < height {
			continue
		}
		from, to := w.Left-usual/3, w.Right+usual/3
		for y := w.Top + height*40/100; y <= w.Top+height*70/100 && !w.Struck; y++ {
			inked := 0
			for x := from; x < to; x++ {
				if min(s.at(x, y-1), s.at(x, y), s.at(x, y+1)) < dark {
					inked++
				}
			}
			w.Struck = 100*inked >= 95*(to-from)
		}
	}
}
