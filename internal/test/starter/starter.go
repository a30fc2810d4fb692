// Package starter starts bahi, as a process or inside this one, for tests, histories and the benchmark.
package starter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"

	"bahi/eventstore/signal"
)

const (
	// OperatorKey is the configured key of the operator.
	OperatorKey = "bahi_admin_of-the-tests-1234567890"

	// MasterKey is the master key of all test systems, because their databases are copies of one.
	MasterKey = "YSBtYXN0ZXIga2V5IHRoYXQgdGVzdHMgbWF5IGtub3c="
)

// Env returns the environment of a bahi with a data folder and a free port.
func Env(data string, settings ...string) []string {
	return append(append(os.Environ(), "BAHI_DATA="+data, "BAHI_ADDR=127.0.0.1:0", "BAHI_ADMIN_API_KEY="+OperatorKey,
		"BAHI_MASTER_KEY="+MasterKey, "BAHI_OCR=demand"), settings...)
}

// Process is a started bahi.
type Process struct {
	Cmd    *exec.Cmd // nil: it runs in this process
	Done   chan struct{}
	Status int    // valid once Done is closed; -1: ended by a signal
	stop   func() // requests its end

	URL, Gateway string // the addresses in its log

	mu    sync.Mutex
	said  bytes.Buffer
	read  int       // bytes of said that were searched for addresses
	log   io.Writer // receives the log as well; may be nil
	wrote signal.Signal
}

// Start starts a program. Its standard error also goes to log, if that is not nil.
func Start(cmd *exec.Cmd, log io.Writer) (*Process, error) {
	p := &Process{Cmd: cmd, Done: make(chan struct{}), log: log}
	p.stop = func() { p.Signal(syscall.SIGTERM) }
	cmd.Stderr = p
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // the process's state has the reason
		p.Status = cmd.ProcessState.ExitCode()
		close(p.Done)
	}()
	return p, nil
}

// Run calls run, which logs and returns a status, as if it were a process. stop requests its end.
func Run(stop func(), run func(log io.Writer) (status int)) *Process {
	p := &Process{Done: make(chan struct{}), stop: stop}
	go func() {
		p.Status = run(p)
		close(p.Done)
	}()
	return p
}

var addresses = regexp.MustCompile(`msg=(serving|"gateway listening") address=(\S+)\s`)

// Write takes a part of the log.
func (p *Process) Write(text []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.Write(text)
	for _, m := range addresses.FindAllSubmatch(p.said.Bytes()[p.read:], -1) {
		if string(m[1]) == "serving" {
			p.URL = string(m[2])
		} else {
			p.Gateway = string(m[2])
		}
	}
	p.read = bytes.LastIndexByte(p.said.Bytes(), '\n') + 1
	if p.log != nil {
		_, err = p.log.Write(text)
	}
	p.wrote.Notify()
	return len(text), err
}

// Text returns its log so far.
func (p *Process) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// Await waits until its log meets a condition.
func (p *Process) Await(ctx context.Context, what func(said string) bool) error {
	for {
		p.mu.Lock()
		ok, more := what(p.said.String()), p.wrote.Wait()
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-more:
		case <-p.Done:
			p.mu.Lock()
			ok := what(p.said.String()) // the process may have logged this just before its end
			p.mu.Unlock()
			if ok {
				return nil
			}
			return fmt.Errorf("bahi ended with status %d", p.Status)
		case <-ctx.Done():
			return fmt.Errorf("bahi did not log what is expected: %w", ctx.Err())
		}
	}
}

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to a process, which may have ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.Cmd.Process.Signal(s) }

// End kills a process, or stops a bahi in this one. It may have ended already.
func (p *Process) End() {
	if p.Cmd == nil {
		p.stop()
	} else {
		p.Signal(syscall.SIGKILL)
	}
	<-p.Done
}

// Interrupt requests the end, and returns the status.
func (p *Process) Interrupt() (status int) {
	p.stop()
	<-p.Done
	return p.Status
}
