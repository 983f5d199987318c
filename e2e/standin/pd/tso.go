package pd

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
)

// clock gives out timestamps that never repeat and never fall, over changes of
// the leader too.
type clock struct {
	mu       sync.Mutex
	physical int64 // milliseconds
	logical  int64
	ceiling  int64 // what is safely behind every later leader
	write    func(ceiling int64) error
}

const (
	logicalBits = 18
	saveAhead   = 3000 // milliseconds
)

func (s *Server) loadClock(ctx context.Context, t *term) (*clock, error) {
	res, err := s.client.Get(ctx, s.key("timestamp"))
	if err != nil {
		return nil, fmt.Errorf("load timestamp: %w", err)
	}
	c := &clock{physical: time.Now().UnixMilli()}
	if len(res.Kvs) > 0 && len(res.Kvs[0].Value) == 8 {
		last := int64(binary.BigEndian.Uint64(res.Kvs[0].Value))
		c.physical = max(c.physical, last+1)
	}
	c.write = func(ceiling int64) error {
		value := make([]byte, 8)
		binary.BigEndian.PutUint64(value, uint64(ceiling))
		return s.put(t, "timestamp", value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.extend()
}

// extend makes more room ahead. It is called with the lock held.
func (c *clock) extend() error {
	ceiling := c.physical + saveAhead
	if err := c.write(ceiling); err != nil {
		return err
	}
	c.ceiling = ceiling
	return nil
}

// save extends the room ahead in good time.
func (c *clock) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forward()
	if c.ceiling-c.physical > saveAhead/2 {
		return nil
	}
	return c.extend()
}

func (c *clock) forward() {
	if now := time.Now().UnixMilli(); now > c.physical {
		c.physical, c.logical = now, 0
	}
}

// next gives out count timestamps, of which it returns the last.
func (c *clock) next(count uint32) (*pdpb.Timestamp, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forward()
	if c.logical+int64(count) >= 1<<logicalBits {
		c.physical++
		c.logical = 0
	}
	if c.physical >= c.ceiling {
		if err := c.extend(); err != nil {
			return nil, err
		}
	}
	c.logical += int64(count)
	return &pdpb.Timestamp{Physical: c.physical, Logical: c.logical}, nil
}
