package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

const (
	// up is how PD calls a store that serves.
	up = "Up"
	// disconnected is how it calls one of which it has not heard for 20 s. A member that
	// has just come to lead PD calls every store so until its next heartbeat.
	disconnected = "Disconnected"
	// offline is how it calls one that is being removed.
	offline = "Offline"
)

const (
	// poll is how often PD is asked, by default.
	poll = 250 * time.Millisecond
	// maxFailures is for how many polls PD may not answer before a store is stopped with its
	// leaders, 20 s by default. A PD whose leader is killed elects another one within about
	// 16 s, and a drain may take it together with the store.
	maxFailures = 80
	// loading is how long PD may take to load its schedulers: five minutes after a change of
	// its leader.
	loading = 6 * time.Minute
)

// Job is what is done for one store.
type Job struct {
	// PD is its base URL, like http://basic-pd.shop.svc:2379.
	PD string
	// TLS is how PD is connected to over TLS.
	TLS hook.TLS
	// Address that the store advertises, host:port.
	Address string
	// Record is the file that reports that this program keeps leaders away from the
	// store. It lies with the store's data.
	Record string
	// Poll is how often PD is asked; 250 ms if zero.
	Poll time.Duration
	// Say reports progress to the user; nil reports none.
	Say hook.Say
}

// Stop gives the leaders of the store away before its process is stopped, until the
// context ends. It returns at once when no other store could lead, and for a store that
// PD does not list or that does not serve. An error says why the process is stopped
// with leaders.
func (j Job) Stop(ctx context.Context) error {
	pd := pdServer{hook.NewPD(j.PD, j.TLS)}
	left, heard, bound := -1, time.Now(), maxFailures*cmp.Or(j.Poll, poll)
	for {
		done, now, err := j.step(ctx, pd)
		switch {
		case done && err == nil:
			if left > 0 {
				j.Say.Logf("all leaders have been given away")
			}
			return nil
		case done:
			return err
		case err == nil, errors.Is(err, errLoading): // it answers
			heard, left = time.Now(), now
		case ctx.Err() == nil:
			if time.Since(heard) >= bound {
				return fmt.Errorf("the store is stopped with its leaders: %w", err)
			}
		}
		if !hook.Pause(ctx, cmp.Or(j.Poll, poll)) {
			if left < 0 {
				return fmt.Errorf("the store is stopped with its leaders, because PD did not answer in time: %w", errors.Join(err, context.Cause(ctx)))
			}
			return fmt.Errorf("the store is stopped with %d leaders, which it could not give away in time", left)
		}
	}
}

// step does what is to be done next, and returns how many leaders are left and whether
// there is nothing more to do.
func (j Job) step(ctx context.Context, pd pdServer) (done bool, leaders int, err error) {
	stores, err := pd.ListStores(ctx)
	if err != nil {
		return false, 0, fmt.Errorf("list stores: %w", err)
	}
	evicted, err := pd.evictedStores(ctx)
	if err != nil {
		return false, 0, err
	}
	var own *hook.Store
	others, disconnectedOthers := 0, 0
	for _, s := range stores {
		switch {
		case s.Address == j.Address && (own == nil || own.State == offline):
			own = &s // one that was lost may be listed at its address as well, until it has no region
		case strings.HasPrefix(s.Engine, "tiflash") || evicted[s.ID]:
		case s.State == up:
			others++
		case s.State == disconnected:
			disconnectedOthers++
		}
	}
	switch {
	case own != nil && own.State == disconnected:
		// Its process runs, in this pod: PD hears of it, or cannot be reached.
		return false, own.Leaders, fmt.Errorf("PD has not heard of store %d", own.ID)
	case own == nil, own.State != up, own.Leaders == 0 && (own.Regions == 0 || evicted[own.ID]):
		return true, 0, nil
	case others == 0 && disconnectedOthers > 0 && own.Leaders > 0:
		return false, own.Leaders, errors.New("PD has not heard of any other store that could lead")
	case others == 0:
		if own.Leaders == 0 {
			return true, 0, nil
		}
		return true, own.Leaders, fmt.Errorf("store %d is stopped with %d leaders: no other store could lead", own.ID, own.Leaders)
	case evicted[own.ID]:
		return false, own.Leaders, nil
	}
	// Before PD has loaded its schedulers it would forget the other stores of this one.
	if err := pd.checkLoaded(ctx); err != nil {
		return false, own.Leaders, err
	}
	if err := j.record(own.ID); err != nil {
		return false, own.Leaders, err
	}
	j.Say.Logf("store %d gives %d leaders away before it is stopped", own.ID, own.Leaders)
	return false, own.Leaders, pd.evict(ctx, own.ID)
}

// Start lets the store lead again if Stop has kept leaders away from it. An error says
// that PD could not be reached for within, or does not load its schedulers: the store would
// lead nothing, and its process has to be started again.
func (j Job) Start(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within+loading)
	defer cancel()
	id, recorded, err := j.readRecord()
	if err != nil || !recorded {
		return err
	}
	pd, heard := pdServer{hook.NewPD(j.PD, j.TLS)}, time.Now()
	for {
		if err = pd.restoreLeaders(ctx, id); err == nil {
			break
		}
		switch {
		case errors.Is(err, errLoading): // it answers
			heard = time.Now()
		case time.Since(heard) >= within:
			return err
		}
		if !hook.Pause(ctx, cmp.Or(j.Poll, poll)) {
			return err
		}
	}
	j.Say.Logf("store %d may lead again", id)
	if err := os.Remove(j.Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of leaders that were given away: %w", err)
	}
	return nil
}

// record writes down that leaders are kept away from a store. It is on the disk before
// PD is told.
func (j Job) record(id uint64) (err error) {
	f, err := os.OpenFile(j.Record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) //nolint:gosec // nothing in it is a secret
	if err != nil {
		return fmt.Errorf("record that leaders are given away: %w", err)
	}
	_, err = fmt.Fprintln(f, id)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("record that leaders are given away: %w", err)
	}
	return nil
}

// readRecord returns the store that leaders were kept away from. A record that was not
// finished was never acted on.
func (j Job) readRecord() (id uint64, found bool, err error) {
	text, err := os.ReadFile(j.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read the record of leaders that were given away: %w", err)
	}
	id, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, false, nil
	}
	return id, true, nil
}
