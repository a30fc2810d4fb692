package progress

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"bahi/internal/test/logtest"
)

// terminal opens a terminal. It returns the file for a program's output, and the screen.
func terminal(t *testing.T) (tty *os.File, shown *logtest.Buffer) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(screen.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}))
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	shown = &logtest.Buffer{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(shown, screen) // ends with an error once the terminal is closed
	}()
	t.Cleanup(func() {
		require.NoError(t, tty.Close())
		<-ended
		require.NoError(t, screen.Close())
	})
	return tty, shown
}

func TestABarIsShownOfWorkThatTakesLongerThanASecond(t *testing.T) {
	t.Parallel()
	tty, shown := terminal(t)
	short, long := NewBar(tty, "import", "products"), NewBar(tty, "import", "products")
	short.all.began = time.Now().Add(time.Hour)
	short.Show(500, 501)
	short.End()
	require.Empty(t, shown.String())
	long.all.began = time.Now().Add(-patience)
	long.Show(0, 501)
	long.Show(500, 501)
	bar := regexp.MustCompile(`import +500 / 501 .* [1-9]\d* products/s, \d+s left`)
	require.Eventually(t, func() bool { return bar.MatchString(shown.String()) }, time.Minute, 10*time.Millisecond)
	long.End()
}
