package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bahi/eventstore/signal"
	"bahi/internal/pgcluster"
)

// DefaultAddr is the default address of HTTP.
const DefaultAddr = "127.0.0.1:8080"

// endTimeout is the time for which a start waits for a process that was just killed: the kernel takes a while to close its files and its
// port.
const endTimeout = 5 * time.Second

// retryPause is the pause between two tries.
const retryPause = 20 * time.Millisecond

// TakePlace locks a data folder and listens at an address. It waits for a process that is ending. It records the address in the folder, for
// commands that call the server. done releases both.
func TakePlace(ctx context.Context, data, addr string) (listener net.Listener, done func(), err error) {
	var lock *pgcluster.FolderLock
	err = patiently(ctx, func() (again bool, err error) {
		lock, err = pgcluster.Lock(data)
		_, again = errors.AsType[*pgcluster.InUseError](err)
		return again, err
	})
	if err != nil {
		return nil, nil, err
	}
	err = patiently(ctx, func() (again bool, err error) {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		return errors.Is(err, syscall.EADDRINUSE), err
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("BAHI_ADDR: %w", err), lock.Release())
	}
	path := addressFile(data)
	if err := os.WriteFile(path, []byte(listener.Addr().String()+"\n"), 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("record the server's address: %w", err), listener.Close(), lock.Release())
	}
	return listener, func() {
		_ = os.Remove(path)  // the next start writes it again
		_ = listener.Close() // the server has closed it
		_ = lock.Release()   // the process ends
	}, nil
}

// patiently calls try until it succeeds, its error excludes a retry, or endTimeout has passed.
func patiently(ctx context.Context, try func() (again bool, err error)) error {
	for end := time.Now().Add(endTimeout); ; {
		again, err := try()
		if !again || time.Now().After(end) {
			return err
		}
		if signal.Sleep(ctx, retryPause) != nil {
			return err
		}
	}
}

func addressFile(data string) string { return filepath.Join(data, "server.addr") }

// ServerAddr returns the address of a data folder's server: the setting, or the server's record, or the default.
func ServerAddr(ctx context.Context, data, setting string) (string, error) {
	addr, from := setting, "BAHI_ADDR"
	if _, port, _ := net.SplitHostPort(addr); addr == "" || port == "0" { // the server chooses one
		from = addressFile(data)
		text, err := os.ReadFile(from) //nolint:gosec // G304: a file of the data folder
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the server's address: %w", err)
		}
		if addr = strings.TrimSpace(string(text)); addr == "" {
			addr = DefaultAddr
		}
	}
	return Reachable(ctx, from, addr)
}

// Reachable returns the address at which this machine reaches a server that listens at an address, or the fault of the address.
func Reachable(ctx context.Context, setting, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	var number int
	if err == nil {
		number, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", setting, err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.Unmap().IsUnspecified() {
		host = "127.0.0.1" // the server listens on all addresses, and a container may not resolve localhost
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}
