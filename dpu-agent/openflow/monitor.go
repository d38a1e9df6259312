// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// A restarted ovs-vswitchd has to be found within two seconds.
	minRetry = 50 * time.Millisecond
	maxRetry = time.Second
	// settle is how long other changes are waited for before a bridge is read.
	settle = 30 * time.Millisecond
	// calm is the shortest time between two readings of a bridge that somebody keeps changing.
	calm = 300 * time.Millisecond
)

// follow watches a bridge until the context ends, over restarts of ovs-vswitchd.
func (p *Programmer) follow(ctx context.Context, s *state) {
	suspect := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.check(ctx, s, suspect)
	}()
	defer func() { <-done }()
	retry := minRetry
	for ctx.Err() == nil {
		answered, err := p.listen(ctx, s, suspect)
		s.monitored(false)
		if answered {
			retry = minRetry
			p.log.Info("lost the flow monitor of a bridge", "bridge", s.name, "err", err)
			s.doubt()
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.log.Debug("cannot monitor a bridge", "bridge", s.name, "err", err)
		}
		wait(ctx, retry)
		retry = min(2*retry, maxRetry)
	}
}

// listen runs a flow monitor to its end and passes on what does not fit. answered says whether it was one.
func (p *Programmer) listen(ctx context.Context, s *state, suspect chan<- struct{}) (answered bool, err error) {
	// Without a socket there is nothing to run a program for.
	if _, err := os.Stat(p.ofctl.socket(s.name)); err != nil {
		return false, err
	}
	// The system ends the monitor with the thread that started it, so that none outlives a killed agent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// With a length for packets, which nobody sends, the changes of ports are reported too. OpenFlow 1.4 has
	// no packets of flow misses for us, as 1.0 would. A control socket would be left behind by every one that is
	// killed, and needs a directory.
	cmd := exec.CommandContext(ctx, p.ofctl.program, "-OOpenFlow14", "--no-names", "--unixctl=none", "monitor",
		p.ofctl.target(s.name), "1", "watch:!initial")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	// The first reply is on its standard output, all that follows on its standard error.
	out, in, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	_ = in.Close()
	if err != nil {
		return false, err
	}
	complaint := &tail{most: 8192}
	readErr := lines(out, func(line string) error {
		e, err := parseEvent(line)
		switch {
		case err != nil:
			p.log.Warn("cannot read a flow monitor's line", "bridge", s.name, "err", err)
			nudge(suspect)
		case e.kind == noEvent:
			_, _ = complaint.Write([]byte(line + "\n"))
		case e.kind == subscribed:
			if !answered { // what happened before was missed
				answered = true
				s.monitored(true)
				nudge(suspect)
			}
		case !s.fits(e):
			nudge(suspect)
		}
		return nil
	})
	if readErr != nil {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err != nil {
		return answered, errors.Join(readErr, &refusal{words: complaint.String(), err: err})
	}
	return answered, readErr
}

// check reads the bridge after what did not fit, and says so if it really is not as programmed.
func (p *Programmer) check(ctx context.Context, s *state, suspect <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-suspect:
		}
		wait(ctx, settle)
		drifted, err := p.drifted(ctx, s)
		if err != nil && ctx.Err() == nil {
			p.log.Info("cannot check a bridge", "bridge", s.name, "err", err)
		}
		if drifted {
			p.log.Info("a bridge's flows were changed by others", "bridge", s.name)
			p.notify(s.name)
		}
		wait(ctx, calm)
	}
}

// drifted tells whether a bridge is not as programmed. Of one that cannot be read that is not known, and whoever
// programs it finds out.
func (p *Programmer) drifted(ctx context.Context, s *state) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.unlock()
	if s.want == nil {
		return false, nil
	}
	difference, err := p.difference(ctx, s)
	var floods bool
	if err == nil && s.frame.Patch != 0 {
		floods, _, err = p.ofctl.floods(ctx, s.name, s.frame.Patch)
	}
	if err == nil && s.unlike != nil && difference.equal(*s.unlike) && !floods {
		return false, nil // known, and told
	}
	if err == nil && difference.empty() && !floods {
		if s.unlike == nil {
			s.believe(nil)
		}
		return false, nil
	}
	s.doubt()
	return true, err
}

func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
